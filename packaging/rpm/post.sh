# $1: 1 for the first installation, 2 for an update.
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    [ "$1" = 1 ] || systemctl try-restart terrace-recorder.service terrace-warm-watch.service
fi
exit 0
