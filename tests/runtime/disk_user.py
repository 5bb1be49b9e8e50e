# SPDX-License-Identifier: Apache-2.0
"""Program that calls CUDA and then reads and writes known amounts of data on a disk. It uses direct I/O, page faults,
and writes with fsync, each on a file of its own. Usage: python3 disk_user.py LIBCUDA FOLDER SIZE. It first waits for a
line on standard input."""
import ctypes
import mmap
import os
import sys

library, folder, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
cuda = ctypes.CDLL(library)
content = mmap.mmap(-1, size)  # page-aligned, as O_DIRECT requires
content.write(os.urandom(size))


def opened(name, flags):
    return os.open(os.path.join(folder, name), flags | os.O_CREAT, 0o600)


def cold(name):
    file = opened(name, os.O_RDWR)
    os.write(file, content)
    os.fsync(file)
    os.posix_fadvise(file, 0, size, os.POSIX_FADV_DONTNEED)
    return file


direct, mapped, written = cold("direct"), cold("mapped"), opened("written", os.O_RDWR)
past_cache = opened("direct", os.O_RDONLY | os.O_DIRECT)
pages = mmap.mmap(mapped, size, prot=mmap.PROT_READ)
print("up", flush=True)
sys.stdin.readline()
cuda.cuCtxSynchronize()
for at in range(0, size, size // 4):
    os.preadv(past_cache, [memoryview(content)[at:at + size // 4]], at)
sum(pages[at] for at in range(0, size, mmap.PAGESIZE))
os.write(written, content)
os.fsync(written)
cuda.cuCtxSynchronize()
