# set.py file PATH MIB OPERATIONS SKEW | anonymous MIB OPERATIONS SKEW | queries MIB OPERATIONS SKEW:
# pieces of a set are used, some much more often than others, in an order that is the same each
# time. All of it is used once before. Several sets are filled one after the other, then used in
# turn. `queries` prints them for a table.
import mmap, os, random, sys

MIB = 1 << 20
PIECE = 128 << 10
PAGE = 4096
ROWS = PIECE // PAGE


def order(pieces, operations, skew, seed):
    numbers = random.Random(seed)
    places = list(range(pieces))
    random.Random(7).shuffle(places)
    for _ in range(operations):
        yield places[int(pieces * numbers.random() ** skew)]


def read_file(path, mib, operations, skew):
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    pieces = mib * MIB // PIECE
    for place in range(pieces):
        os.pread(file, PIECE, place * PIECE)
    yield
    for place in order(pieces, operations, skew, 3):
        os.pread(file, PIECE, place * PIECE)
        yield


# A piece is a run of pages here, as the kernel reads a few beside the one that is asked for.
def touch_memory(mib, operations, skew):
    memory = mmap.mmap(-1, mib * MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pieces = mib * MIB // PIECE
    for place in range(pieces):
        for page in range(0, PIECE, PAGE):
            memory[place * PIECE + page : place * PIECE + page + 16] = os.urandom(16)
    yield
    for count, place in enumerate(order(pieces, operations, skew, 5)):
        for page in range(0, PIECE, PAGE):
            if count % 4 == 0:
                memory[place * PIECE + page + 16] = count & 255
            else:
                memory[place * PIECE + page]
        yield


def print_queries(mib, operations, skew):
    print("SELECT sum(length(v)) FROM t;")
    yield
    for place in order(mib * MIB // PIECE, operations, skew, 3):
        first, last = place * ROWS, place * ROWS + ROWS - 1
        print(f"SELECT sum(length(v)) FROM t WHERE id BETWEEN {first} AND {last};")
        yield


def users(words):
    while words:
        if words[0] == "file":
            yield read_file(words[1], int(words[2]), int(words[3]), float(words[4]))
            words = words[5:]
        else:
            use = touch_memory if words[0] == "anonymous" else print_queries
            yield use(int(words[1]), int(words[2]), float(words[3]))
            words = words[4:]


running = [user for user in users(sys.argv[1:]) if next(user) is None]
while running:
    running = [user for user in running if next(user, user) is None]
