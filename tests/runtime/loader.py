# SPDX-License-Identifier: Apache-2.0
"""Trainer with worker processes that prepare its data, like PyTorch's DataLoader: loader.py LIBCUDA WORKERS BATCHES MS.

A worker spends MS milliseconds of CPU time on each batch. The trainer creates the file "up", waits for the file "go",
and finally prints the workers' own measurements: the time spent preparing batches, and how much of that time they ran
on a CPU or waited for one."""
import ctypes
import json
import multiprocessing
import os
import sys
import time


def figures():
    cpu, queued, _ = map(int, open("/proc/thread-self/schedstat").read().split())
    return time.monotonic_ns(), cpu, queued


def prepare(batches, work, queue, results):
    begin = figures()
    for _ in range(batches):
        end = time.thread_time() + work
        while time.thread_time() < end:
            pass
        queue.put(bytes(100_000))
    results.put([now - then for now, then in zip(figures(), begin)])


def main():
    library, workers, batches, work = sys.argv[1], *map(int, sys.argv[2:])
    cuda = ctypes.CDLL(library)
    queue, results = multiprocessing.Queue(2), multiprocessing.Queue()
    open("up", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    for _ in range(workers):
        multiprocessing.Process(target=prepare, args=(batches, work / 1000, queue, results)).start()
    for _ in range(workers * batches):
        queue.get()
        cuda.cuLaunchKernel(None, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    print(json.dumps([dict(zip(("wall_ns", "cpu_ns", "queued_ns"), results.get())) for _ in range(workers)]))


if __name__ == "__main__":
    main()
