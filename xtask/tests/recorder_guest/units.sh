# Before systemd: the unit of the packages, for the program of the test.
set -e
program=$(command -v terrace)
sed "s|/usr/bin/terrace|$program|" terrace-recorder.service >/etc/systemd/system/terrace-recorder.service
