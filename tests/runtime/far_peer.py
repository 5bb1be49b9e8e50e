# SPDX-License-Identifier: Apache-2.0
"""A trainer that asks a peer over TCP before each launch, which is far away: in a network namespace of their own, what is
sent to 10.9.0.2 or fd09::2 comes back from there to 10.9.0.1 or fd09::1, later; and of each LOSE_EACH questions, one not at all. That is a tun device whose
other end this program has: python3 far_peer.py CUDA MS LOSE_EACH, which prints the trainer's pid and makes the file "up"
when it is connected; the trainer launches until there is "go", asks, makes "asked" when it is through, with what TCP says of each of its sockets, and waits for "end"."""
import collections
import ctypes
import fcntl
import json
import os
import pathlib
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

CLONE_NEWNET, TUNSETIFF, TUN_WITHOUT_HEADER = 0x40000000, 0x400454CA, 0x1001
PR_SET_PDEATHSIG = 1
PORT = 9000
PEERS = {"10.9.0.2": socket.AF_INET, "fd09::2": socket.AF_INET6}
libc = ctypes.CDLL(None, use_errno=True)


def open_device():
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"far", TUN_WITHOUT_HEADER))
    for command in ("link set lo up", "link set far up", "addr add 10.9.0.1/24 dev far", "-6 addr add fd09::1/64 dev far nodad"):
        subprocess.run(["ip", *command.split()], check=True)
    return device


def turned(packet):
    """From whom it is to, to whom it is from. All sums stay the same."""
    at, size = (12, 4) if packet[0] >> 4 == 4 else (8, 16)
    return packet[:at] + packet[at + size:at + 2 * size] + packet[at:at + size] + packet[at + 2 * size:]


def asks(packet):
    """It has data for the peer's port."""
    head = 20 if packet[0] >> 4 == 4 else 40
    return len(packet) > head + 32 and struct.unpack_from(">H", packet, head + 2) == (PORT,)  # TCP has a head of 32


def reflect(device, delay, lose_each):
    waiting, asked = [], collections.Counter()  # by version of IP
    while True:
        least = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([device], [], [], least)[0]:
            packet = os.read(device, 65536)
            asked[packet[0]] += asks(packet)
            if not asks(packet) or asked[packet[0]] % lose_each:
                waiting.append((time.monotonic() + delay, packet))
        while waiting and waiting[0][0] <= time.monotonic():
            os.write(device, turned(waiting.pop(0)[1]))


def answer(listener):
    def echo(connection):
        while data := connection.recv(4096):
            connection.sendall(data)
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()


def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)


def told_by_tcp(one):
    """By the layout of struct tcp_info."""
    info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    rtt, retransmits, again = struct.unpack_from("I", info, 68)[0], struct.unpack_from("I", info, 100)[0], struct.unpack_from("Q", info, 208)[0]
    received, = struct.unpack_from("Q", info, 128)
    arrived, segments = struct.unpack_from("2I", info, 152)
    sent, = struct.unpack_from("Q", info, 200)
    return {"rtt_us": rtt, "retransmits": retransmits, "received_bytes": received, "segments_received": arrived,
            "segments": segments, "sent_bytes": sent - again}


def train(cuda):
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    driver = ctypes.CDLL(cuda)
    def launch():
        driver.cuLaunchKernel(None, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    sockets = {}
    for address, family in PEERS.items():
        sockets[address] = socket.socket(family, socket.SOCK_STREAM)
        sockets[address].connect((address, PORT))
    launch()
    pathlib.Path("up").touch()
    while not os.path.exists("go"):
        launch()
        time.sleep(0.05)
    for _ in range(16):
        for one in sockets.values():
            launch()
            one.sendall(b"x" * 1000)
            got = 0
            while got < 1000:
                got += len(one.recv(1000 - got))
    time.sleep(0.1)  # the last acknowledgement is on its way
    pathlib.Path("asked.new").write_text(json.dumps({address: told_by_tcp(one) for address, one in sockets.items()}))
    os.rename("asked.new", "asked")
    wait_for("end")


if __name__ == "__main__":
    cuda, milliseconds, lose_each = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    if libc.unshare(CLONE_NEWNET):
        sys.exit(os.strerror(ctypes.get_errno()))
    device = open_device()
    listeners = [socket.create_server(("", PORT), family=family) for family in PEERS.values()]
    trainer = os.fork()
    if not trainer:
        os.close(device)
        train(cuda)
        os._exit(0)
    for listener in listeners:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
    threading.Thread(target=reflect, args=(device, milliseconds / 2000, lose_each), daemon=True).start()
    print(trainer, flush=True)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(trainer, 0)[1]))
