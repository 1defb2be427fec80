# use.py read|write DEVICE FIRST COUNT BYTES TIMES: pieces at places of a device that are far apart
# and in no order, past the page cache; how many milliseconds each time took.
import mmap, os, random, sys, time

STRIDE = 256 << 10
SLOTS = 900

what, device = sys.argv[1:3]
first, count, size, times = map(int, sys.argv[3:])
places = list(range(SLOTS))
random.Random(5).shuffle(places)
file = os.open(device, os.O_DIRECT | (os.O_RDONLY if what == "read" else os.O_RDWR))
piece = mmap.mmap(-1, size)
move = os.preadv if what == "read" else os.pwritev
for _ in range(times):
    began = time.monotonic()
    for place in places[first : first + count]:
        move(file, [piece], place * STRIDE)
    print(round((time.monotonic() - began) * 1000))
