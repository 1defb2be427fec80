# day.py kill PID: kills it, and prints the time.
# day.py lost RECORDING TIME: the seconds between its last sample and that time.
# day.py age RECORDING: the hours between its first sample and its last one.
import json, os, signal, sys, time

what, argument, *rest = sys.argv[1:]
if what == "kill":
    now = time.time()
    os.kill(int(argument), signal.SIGKILL)
    print(now)
else:
    with open(argument) as file:
        recording = json.load(file)
    started = recording["facts"]["started_unix_ns"]
    first, last = (recording["samples"][at]["at_ns"] for at in (0, -1))
    print(float(rest[0]) - (started + last) / 1e9 if what == "lost" else (last - first) / 3600e9)
