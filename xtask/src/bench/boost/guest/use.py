# use.py make FILE MIB: fills a file with pieces of programs; each block of 4 KiB begins with its number.
# use.py zipf FILE REQUESTS SKEW SEED WRITES DISK STICK LOG [CACHE LIST]: skewed requests of 4 KiB, past
#     the page cache, of which WRITES % write. A line for each: block, microseconds, r or w; before
#     every 250 the seconds since the start, as `at`, and a line of what both disks did: `disk` or
#     `stick`, requests and sectors read and written. With CACHE a fill of it by LIST begins with the
#     requests, and there are lines of its `hits` until then: the disk serves the fill too.
# use.py ranks FILE COUNT: the most likely blocks of those requests, as places on the disk below
#     the file system: a line with offset and length for each, the most likely first.
# use.py random FILE REQUESTS SEED r|w FROM LOG: blocks of the part that begins at FROM (of 1), each
#     once: microseconds of each.
# use.py places FILE DISK REQUESTS SEED LOG: microseconds of reads of DISK where random blocks of FILE
#     are on it, past all that is between the two.
# use.py rate FILE MIB: reads from the start in order, 1 MiB at a time: seconds.
# use.py sums FILE LOG: a sum of each block that LOG has; differ A B: how many lines of A are not B's.
import bisect, itertools, json, mmap, os, random, subprocess, sys, time, zlib

BLOCK = 4096
MIB = 1 << 20
CHUNK = 250


def direct(path, write=False):
    return os.open(path, os.O_DIRECT | (os.O_RDWR if write else os.O_RDONLY))


def programs():
    for name in sorted(os.listdir("/usr/bin")) * 100:
        path = "/usr/bin/" + name
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                while piece := file.read(BLOCK - 16):
                    if len(piece) == BLOCK - 16:
                        yield piece


def make(path, mib):
    pieces = programs()
    with open(path, "wb", buffering=MIB) as file:
        for block in range(mib * MIB // BLOCK):
            file.write(block.to_bytes(16, "little") + next(pieces))
        file.flush()
        os.fsync(file.fileno())


# The blocks by their rank, drawn once for all runs.
def ranked(blocks):
    places = list(range(blocks))
    random.Random(7).shuffle(places)
    return places


# Ranks by the inverse of the distribution.
def zipf_blocks(blocks, skew, seed):
    sums = list(itertools.accumulate((rank + 1) ** -skew for rank in range(blocks)))
    places = ranked(blocks)
    numbers = random.Random(seed)
    while True:
        yield places[min(bisect.bisect(sums, numbers.random() * sums[-1]), blocks - 1)]


# Where each extent of a file is: its first byte in the file, that on the device, and its length.
def extents(path):
    printed = subprocess.run(["filefrag", "-b1", "-v", path], check=True, capture_output=True)
    found = []
    for line in printed.stdout.decode().splitlines():
        words = line.replace("..", ":").split(":")
        if words[0].strip().isdigit():
            found.append((int(words[1]), int(words[3]), int(words[5])))
    return sorted(found)


# Where blocks of a file are on the device.
def places(path, blocks):
    known = extents(path)
    starts = [extent[0] for extent in known]
    for block in blocks:
        first, place, length = known[bisect.bisect(starts, block * BLOCK) - 1]
        if not first <= block * BLOCK < first + length:
            sys.exit(f"block {block} has no place")
        yield place + block * BLOCK - first


def ranks(path, count):
    for place in places(path, ranked(os.path.getsize(path) // BLOCK)[:count]):
        print(place, BLOCK)


def at_places(path, disk, requests, seed, log):
    blocks = random.Random(seed).sample(range(os.path.getsize(path) // BLOCK), requests)
    file = direct(disk)
    piece = mmap.mmap(-1, BLOCK)
    with open(log, "w") as out:
        for place in places(path, blocks):
            began = time.monotonic_ns()
            os.preadv(file, [piece], place)
            out.write(f"{(time.monotonic_ns() - began) // 1000}\n")


def counters(device):
    with open(f"/sys/block/{device}/stat") as file:
        words = file.read().split()
    return " ".join([words[0], words[2], words[4], words[6]])


def zipf(path, requests, skew, seed, writes, disk, stick, log, cache=None, ranks=None):
    file = direct(path, writes > 0)
    blocks = os.lseek(file, 0, os.SEEK_END) // BLOCK
    drawn = zipf_blocks(blocks, skew, seed)
    kinds = random.Random(seed + 1)
    piece = mmap.mmap(-1, BLOCK)
    lines = []

    def look():
        yield f"at {time.monotonic() - start:.6f}"
        if cache:
            printed = subprocess.check_output(["terrace", "boost", "status", cache, "--json"])
            yield f"hits {json.loads(printed)['caches'][0]['hits']}"
        yield f"disk {counters(disk)}"
        yield f"stick {counters(stick)}"

    # All ranks are known by then.
    block = next(drawn)
    start = time.monotonic()
    filling = cache and subprocess.Popen(["terrace", "boost", "fill", cache, ranks])
    for count in range(requests):
        if count % CHUNK == 0:
            lines += look()
        kind = "w" if kinds.random() * 100 < writes else "r"
        if kind == "w":
            piece[:16] = block.to_bytes(16, "little")
            piece[16:24] = count.to_bytes(8, "little")
        began = time.monotonic_ns()
        if kind == "w":
            os.pwritev(file, [piece], block * BLOCK)
        else:
            os.preadv(file, [piece], block * BLOCK)
        lines.append(f"{block} {(time.monotonic_ns() - began) // 1000} {kind}")
        if int.from_bytes(piece[:16], "little") != block:
            sys.exit(f"block {block} is another one")
        block = next(drawn)
    lines += look()
    if filling and filling.wait() != 0:
        sys.exit("the fill failed")
    with open(log, "w") as out:
        out.write("\n".join(lines) + "\n")


def at_random(path, requests, seed, kind, start, log):
    file = direct(path, kind == "w")
    blocks = os.lseek(file, 0, os.SEEK_END) // BLOCK
    first = int(blocks * start)
    # A frame of the cache is 16 KiB: blocks that share none.
    places = random.Random(seed).sample(range(first, blocks, 4), requests)
    piece = mmap.mmap(-1, BLOCK)
    with open(log, "w") as out:
        for block in places:
            piece[:16] = block.to_bytes(16, "little")
            began = time.monotonic_ns()
            if kind == "w":
                os.pwritev(file, [piece], block * BLOCK)
            else:
                os.preadv(file, [piece], block * BLOCK)
            out.write(f"{(time.monotonic_ns() - began) // 1000}\n")


def rate(path, mib):
    file = direct(path)
    piece = mmap.mmap(-1, MIB)
    began = time.monotonic()
    for place in range(mib):
        os.preadv(file, [piece], place * MIB)
    print(round(time.monotonic() - began, 6))


def sums(path, log):
    with open(log) as lines:
        words = (line.split() for line in lines)
        blocks = sorted({int(line[0]) for line in words if len(line) == 3})
    file = direct(path)
    piece = mmap.mmap(-1, BLOCK)
    for block in blocks:
        os.preadv(file, [piece], block * BLOCK)
        print(block, zlib.crc32(piece))


what, path, *words = sys.argv[1:]
if what == "make":
    make(path, int(words[0]))
elif what == "zipf":
    numbers = int(words[0]), float(words[1]), int(words[2]), int(words[3])
    zipf(path, *numbers, *words[4:])
elif what == "random":
    at_random(path, int(words[0]), int(words[1]), words[2], float(words[3]), words[4])
elif what == "places":
    at_places(path, words[0], int(words[1]), int(words[2]), words[3])
elif what == "ranks":
    ranks(path, int(words[0]))
elif what == "rate":
    rate(path, int(words[0]))
elif what == "differ":
    with open(path) as a, open(words[0]) as b:
        print(len(set(a) - set(b)))
else:
    sums(path, words[0])
