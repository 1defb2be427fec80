# Requests past the page cache. A piece is a frame of the cache, a block what programs read.
# blocks.py make FILE MIB: each block begins with its number.
# blocks.py skewed FILE REQUESTS SEED WRITES: some blocks far more often than others; WRITES % write.
#     Each read must give the block that it asked for.
# blocks.py sums DEVICE: a sum of each piece, read once, in an order without runs, which a cache
#     would leave to the disk.
# blocks.py short MEMINFO SECONDS: takes all memory but a little, then touches it for so long; prints
#     the least that was available, in MiB. The kernel would end it before any other program.
# blocks.py fio FILE: `errors N` and `longest SECONDS` of one request, as fio wrote them.
import bisect, itertools, json, mmap, os, random, sys, time, zlib

BLOCK = 4096
PIECE = 16384


def direct(path, write=False):
    file = os.open(path, os.O_DIRECT | (os.O_RDWR if write else os.O_RDONLY))
    return file, os.lseek(file, 0, os.SEEK_END)


def make(path, mib):
    with open(path, "wb") as file:
        for block in range(mib * (1 << 20) // BLOCK):
            file.write(block.to_bytes(16, "little") + random.randbytes(BLOCK - 16))
        file.flush()
        os.fsync(file.fileno())


def skewed(path, requests, seed, writes):
    file, size = direct(path, True)
    blocks = size // BLOCK
    sums = list(itertools.accumulate((rank + 1) ** -1.2 for rank in range(blocks)))
    places = list(range(blocks))
    random.Random(7).shuffle(places)
    numbers = random.Random(seed)
    piece = mmap.mmap(-1, BLOCK)
    for count in range(requests):
        rank = bisect.bisect(sums, numbers.random() * sums[-1])
        block = places[min(rank, blocks - 1)]
        if numbers.random() * 100 < writes:
            piece[:16] = block.to_bytes(16, "little")
            piece[16:24] = count.to_bytes(8, "little")
            os.pwritev(file, [piece], block * BLOCK)
            continue
        os.preadv(file, [piece], block * BLOCK)
        if int.from_bytes(piece[:16], "little") != block:
            sys.exit(f"block {block} is another one")


def sums(path):
    file, size = direct(path)
    piece = mmap.mmap(-1, PIECE)
    found = {}
    # Of each stretch in another order: the head of the disk need not go far.
    for start in range(0, size // PIECE, 64):
        places = list(range(start, min(start + 64, size // PIECE)))
        random.Random(start).shuffle(places)
        for place in places:
            os.preadv(file, [piece], place * PIECE)
            found[place] = zlib.crc32(piece)
    for place, found_sum in sorted(found.items()):
        print(place, found_sum)


def short(path, seconds):
    def available():
        with open(path) as file:
            sizes = {line.split(":")[0]: int(line.split()[1]) for line in file}
        return sizes["MemAvailable"] / 1024

    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    least, held = available(), []

    def take():
        spare = int(available() - 16)
        if spare > 0:
            held.append(bytearray(max(spare // 2, 1) << 20))
        return spare <= 8

    def touch():
        nonlocal least
        for piece in held:
            piece[::BLOCK] = b"x" * (len(piece) // BLOCK)
        least = min(least, available())

    # Under emulation, taking it all takes longer than all else here.
    patience = time.monotonic() + 60
    while not take() and time.monotonic() < patience:
        touch()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        take()
        touch()
    print(least)


def fio(path):
    with open(path) as file:
        text = file.read()
    jobs = json.loads(text[text.index("{"):])["jobs"]
    kinds = [job[kind] for job in jobs for kind in ["read", "write"]]
    print("requests", sum(kind["total_ios"] for kind in kinds))
    print("errors", sum(job["error"] != 0 for job in jobs))
    print("longest", max(kind["lat_ns"]["max"] for kind in kinds) / 1e9)


what, path, *words = sys.argv[1:]
{"make": make, "skewed": skewed, "sums": sums, "short": short, "fio": fio}[what](path, *map(int, words))
