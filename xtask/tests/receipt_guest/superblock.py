# superblock.py DISK STICK: what make-bcache writes on both, so that the stick is the disk's cache.
# The image has no such program. The form is Linux's `struct cache_sb_disk`.
import os, struct, sys

SECTOR = 512
PLACE = 8
MAGIC = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
POLYNOMIAL = 0x42F0E1EBA9EA3693
ONES = (1 << 64) - 1
OF_CACHE, OF_DISK = 0, 1
# With fewer than a thousand buckets a cache does not start.
BUCKETS = 1024


def crc64(data):
    crc = ONES
    for byte in data:
        crc ^= byte << 56
        for _ in range(8):
            crc = (crc << 1 ^ (POLYNOMIAL if crc >> 63 else 0)) & ONES
    return crc ^ ONES


def write(path, version, uuid, set_uuid, buckets, bucket_sectors, first_bucket):
    checked = struct.pack("<QQ16s16s16s32s10Q", PLACE, version, MAGIC, uuid, set_uuid, b"", *[0] * 10)
    checked += struct.pack("<QHHHHIHH", buckets, 1, bucket_sectors, 1, 0, 0, first_bucket, 0)
    with open(path, "r+b") as device:
        device.seek(PLACE * SECTOR)
        device.write(struct.pack("<Q", crc64(checked)) + checked)
        os.fsync(device.fileno())


disk, stick = sys.argv[1:]
set_uuid = b"a set of caches."
size = os.stat(stick).st_size or os.lseek(os.open(stick, os.O_RDONLY), 0, os.SEEK_END)
bucket = size // BUCKETS // SECTOR
write(stick, OF_CACHE, b"the stick's uuid", set_uuid, BUCKETS, bucket, 23 // bucket + 1)
write(disk, OF_DISK, b"the disk's uuid.", set_uuid, 0, bucket, 0)
