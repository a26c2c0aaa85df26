# A host's boot, first process of a mount and process namespace of its own: what it changes of /etc,
# /home and the rest is the host's, and all of it ends with this process.
set -eu
mount --bind "$GUEST/etc" /etc
mount --bind "$GUEST/home" /home
mount --bind "$GUEST/sbin" /usr/local/sbin
mount --bind "$GUEST/uptime" /proc/uptime
mount -t tmpfs -o mode=755 none /run
mount --bind /sys /sys && mount -o remount,bind,ro /sys
mkdir -p /run/sshd

# What cloud-init does with user data, in its order: boothook, cloud-config, script.
sh -eu "$GUEST/boothook"
rm -f /etc/ssh/ssh_host_*
for type in $KEY_TYPES; do
    ssh-keygen -q -t "$type" -N "" -C "root@host" -f "/etc/ssh/ssh_host_${type}_key"
done
{
    echo "-----BEGIN SSH HOST KEY KEYS-----"
    cat /etc/ssh/ssh_host_*_key.pub
    echo "-----END SSH HOST KEY KEYS-----"
} > "$GUEST/console.new"
mv "$GUEST/console.new" "$GUEST/console"
/usr/sbin/sshd -f "$GUEST/sshd_config" -E "$GUEST/sshd.log"
sh -eu "$GUEST/script"
while :; do
    sleep 60
done
