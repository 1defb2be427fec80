# set.py file PATH MIB OPERATIONS SKEW | anonymous MIB OPERATIONS SKEW: pieces of a set are used, some
# much more often than others, in an order that is the same each time. All of it is used once before.
import mmap, os, random, sys

KIB, MIB = 1024, 1 << 20
PIECE = 128 * KIB
PAGE = 4096


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


def users(words):
    while words:
        if words[0] == "file":
            yield read_file(words[1], int(words[2]), int(words[3]), float(words[4]))
            words = words[5:]
        else:
            yield touch_memory(int(words[1]), int(words[2]), float(words[3]))
            words = words[4:]


# Several sets are filled one after the other, then used in turn.
running = [user for user in users(sys.argv[1:]) if next(user) is None]
while running:
    running = [user for user in running if next(user, user) is None]
