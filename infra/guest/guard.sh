#!/bin/sh
# Ends this host when its deadline has come, or when its outer deadline was not acknowledged in
# time. Run every minute: a clock that was wrong, or a power-off that failed, is met again.
root="${HARNESS_ROOT:-}"
deadline=@DEADLINE_EPOCH@
acknowledge_within=@ACKNOWLEDGE_WITHIN_S@

power_off() {
    echo "harness: powering off: $1" >&2
    systemctl poweroff || shutdown -P now
    sleep 120
    systemctl poweroff --force
    sleep 60
    systemctl poweroff --force --force
    exit 0
}

now=$(date +%s)
up=$(cut -d. -f1 "$root/proc/uptime")
if ! [ "$now" -lt "$deadline" ]; then
    power_off "the deadline @DEADLINE_UTC@ has come"
fi
if [ ! -e "$root/run/harness/acknowledged" ] && ! [ "$up" -lt "$acknowledge_within" ]; then
    power_off "no outer deadline was acknowledged within $acknowledge_within s of boot"
fi
exit 0
