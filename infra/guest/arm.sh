# The first act of a boot, before any package work. What cannot be armed does not stay up.
set -eu
root="${HARNESS_ROOT:-}"
trap 'status=$?; [ $status -eq 0 ] || systemctl poweroff' EXIT
mkdir -p "$root/usr/local/sbin" "$root/etc/systemd/system" "$root/etc/harness" "$root/run/harness"
@FILES@
chmod 755 "$root/usr/local/sbin/harness-guard" "$root/usr/local/sbin/harness-records"
systemctl daemon-reload
systemctl enable harness-guard.timer harness-acknowledge.service
# Without waiting: this runs in the middle of the boot, which the timer is ordered after.
systemctl start --no-block harness-guard.timer harness-guard.service harness-acknowledge.service
