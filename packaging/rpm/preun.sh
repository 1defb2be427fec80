# $1: 0 for a removal, 1 for an update.
if [ "$1" = 0 ] && [ -d /run/systemd/system ]; then
    systemctl disable --now terrace-recorder.service terrace-warm-watch.service
fi
exit 0
