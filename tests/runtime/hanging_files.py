# SPDX-License-Identifier: Apache-2.0
"""FUSE file system without caching, whose server can hang or be slow: python3 hanging_files.py FOLDER FILE [OWNER].

It serves FILE as FOLDER/NAME, and as NAME@3, NAME@4 and so on. If the server is stopped, any access hangs. After
SIGUSR1, each open takes 0.4 s. After SIGUSR2, one more open is answered, and later ones hang. With OWNER, a user id,
only that user has access."""
import ctypes
import os
import signal
import stat
import struct
import sys
import time

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, OPENDIR, RELEASEDIR, BATCH_FORGET = \
    1, 2, 3, 14, 15, 18, 25, 26, 27, 29, 42
ENOENT, ENOSYS = 2, 38
root, first_file = 1, 2  # node numbers; NAME@3 has number 3, and so on


class Server:
    def __init__(self, folder, path, owner=None):
        self.device = os.open("/dev/fuse", os.O_RDWR)
        access = f"user_id={owner},group_id={owner}" if owner else "user_id=0,group_id=0,allow_other"
        options = f"fd={self.device},rootmode=40000,{access}".encode()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"hanging", os.fsencode(folder), b"fuse", 0, options):
            sys.exit(os.strerror(ctypes.get_errno()))
        self.name = os.fsencode(os.path.basename(path))
        self.seconds = 0  # delay of each open
        self.opens_left = None  # number of opens that will still be answered; None: no limit
        with open(path, "rb") as file:
            self.content = file.read()

    def attributes(self, node):
        mode, size = (stat.S_IFDIR | 0o755, 0) if node == root else (stat.S_IFREG | 0o755, len(self.content))
        return struct.pack("6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, operation, node, body):
        """Reply to one request. All validity times are 0, so the kernel caches nothing."""
        if operation == INIT:
            return struct.pack("4I2H2I2H8I", 7, 31, 1 << 16, 0, 8, 8, 1 << 16, 1, 16, 0, 0, *[0] * 7)
        if operation == LOOKUP:
            name, _, number = body.rstrip(b"\0").partition(b"@")
            if name != self.name:
                return ENOENT
            node = int(number or first_file)
            return struct.pack("4Q2I", node, 0, 0, 0, 0, 0) + self.attributes(node)
        if operation == GETATTR:
            return struct.pack("Q2I", 0, 0, 0) + self.attributes(node)
        if operation == OPEN:
            time.sleep(self.seconds)
            if self.opens_left == 0:
                return None
            self.opens_left = self.opens_left and self.opens_left - 1
        if operation in (OPEN, OPENDIR):
            return struct.pack("Q2I", 0, 0, 0)
        if operation == READ:
            _, offset, size = struct.unpack_from("2QI", body)
            return self.content[offset:offset + size]
        return b"" if operation in (RELEASE, FLUSH, RELEASEDIR) else ENOSYS

    def be_slow(self, *_):
        self.seconds = 0.4

    def answer_one_open(self, *_):
        self.opens_left = 1

    def serve(self):
        while True:
            request = os.read(self.device, 1 << 18)
            _, operation, unique, node = struct.unpack_from("2I2Q", request)
            if operation in (FORGET, BATCH_FORGET):
                continue
            answer = self.answer(operation, node, request[40:])
            if answer is None:
                continue
            error, data = (-answer, b"") if isinstance(answer, int) else (0, answer)
            os.write(self.device, struct.pack("IiQ", 16 + len(data), error, unique) + data)


if __name__ == "__main__":
    server = Server(*sys.argv[1:])
    signal.signal(signal.SIGUSR1, server.be_slow)
    signal.signal(signal.SIGUSR2, server.answer_one_open)
    print("up", flush=True)
    server.serve()
