# SPDX-License-Identifier: Apache-2.0
"""Attaches a program of blocks.bpf.c until stdin is closed: floor.py OBJECT PROGRAM KIND PID PATH OFFSET[,OFFSET]

KIND is entry, pair (entry and return), session, or perf (a perf event instead of a uprobe_multi link). The empty
program shows the kernel's part of a probe's cost."""
import ctypes
import os
import platform
import struct
import sys
import threading
import time

ENTRY, SESSION = 48, 57  # BPF_TRACE_UPROBE_MULTI, BPF_TRACE_UPROBE_SESSION
LINK_CREATE, ON_RETURN = 28, 1
bpf_call = {"x86_64": 321, "aarch64": 280}[platform.machine()]
libc, libbpf = ctypes.CDLL(None, use_errno=True), ctypes.CDLL("libbpf.so.1", use_errno=True)


def call(name, *arguments):
    """Calls a function of libbpf, which returns a pointer or 0, and fails with a null pointer or a negative number."""
    function = getattr(libbpf, name)
    function.restype = ctypes.c_void_p if returns_pointer[name] else ctypes.c_int
    result = function(*arguments)
    if result is None or not returns_pointer[name] and result < 0:
        sys.exit(f"floor: {name}: {os.strerror(ctypes.get_errno())}")
    return ctypes.c_void_p(result) if returns_pointer[name] else result


returns_pointer = {"bpf_object__open": True, "bpf_object__find_program_by_name": True, "bpf_object__next_program": True,
                   "bpf_object__find_map_by_name": True, "bpf_program__attach_uprobe": True, "ring_buffer__new": True,
                   "bpf_program__set_autoload": False, "bpf_program__set_expected_attach_type": False,
                   "bpf_map__set_max_entries": False, "bpf_object__load": False, "bpf_program__fd": False,
                   "bpf_object__find_map_fd_by_name": False}


def load(path, name, attach_type):
    """Loads one program of the object."""
    bpf_object = call("bpf_object__open", path.encode())
    wanted = call("bpf_object__find_program_by_name", bpf_object, name.encode())
    libbpf.bpf_object__next_program.restype = ctypes.c_void_p
    program = None
    while program := libbpf.bpf_object__next_program(bpf_object, ctypes.c_void_p(program)):
        call("bpf_program__set_autoload", ctypes.c_void_p(program), program == wanted.value)
    call("bpf_program__set_expected_attach_type", wanted, attach_type)
    # Entry 0: the reader's position; entry 1: a line.
    call("bpf_map__set_max_entries", call("bpf_object__find_map_by_name", bpf_object, b"lines"), 2)
    call("bpf_object__load", bpf_object)
    return bpf_object, wanted


def link(program, attach_type, path, offsets, pid, on_return):
    """Like bpf_link_create(), which rejects attach types that libbpf does not know."""
    text, numbers = ctypes.create_string_buffer(path.encode()), (ctypes.c_uint64 * len(offsets))(*offsets)
    attributes = ctypes.create_string_buffer(struct.pack(
        "=4I4Q4I", call("bpf_program__fd", program), 0, attach_type, 0, ctypes.addressof(text),
        ctypes.addressof(numbers), 0, 0, len(offsets), ON_RETURN if on_return else 0, pid, 0))
    if libc.syscall(bpf_call, LINK_CREATE, attributes, len(attributes) - 1) < 0:
        sys.exit(f"floor: attach: {os.strerror(ctypes.get_errno())}")


def empty_ring_buffer(bpf_object):
    """Without a reader the ring buffer would fill up. Reserving space in a full buffer fails immediately, and is
    cheaper than a normal reservation. The reader calls abs(0) for each record, because Python would be too slow."""
    ring = call("ring_buffer__new", call("bpf_object__find_map_fd_by_name", bpf_object, b"ring"), libc.abs, None, None)
    while True:
        libbpf.ring_buffer__consume(ring)
        time.sleep(0.001)


def main(path, name, kind, pid, library, offsets):
    pid, offsets = int(pid), [int(offset) for offset in offsets.split(",")]
    attach_type = {"session": SESSION, "perf": 0}.get(kind, ENTRY)
    bpf_object, program = load(path, name, attach_type)
    threading.Thread(target=empty_ring_buffer, args=(bpf_object,), daemon=True).start()
    if kind == "perf":
        call("bpf_program__attach_uprobe", program, False, pid, library.encode(), ctypes.c_size_t(offsets[0]))
    for on_return in {"perf": (), "pair": (True, False)}.get(kind, (False,)):
        link(program, attach_type, library, offsets, pid, on_return)
    sys.stdin.read()
    os._exit(0)


main(*sys.argv[1:])
