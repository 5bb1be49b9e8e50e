# SPDX-License-Identifier: Apache-2.0
"""Trainer that exchanges data with a distant TCP peer around its launches: python3 far_peer.py CUDA MS LOSE_EACH.

In a new network namespace, this program serves a tun device that reflects packets: data sent to 10.9.0.2 or fd09::2
arrives at 10.9.0.1 or fd09::1, with a round-trip time of MS milliseconds. Every LOSE_EACH-th packet that carries a
request is dropped. The program prints the trainer's pid. The trainer creates the file "up" once it is connected,
launches until the file "go" exists, sends its requests, writes the TCP statistics of its sockets to the file "asked",
and waits for the file "end"."""
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


def swapped(packet):
    """The packet with source and destination address swapped. This leaves all checksums valid."""
    at, size = (12, 4) if packet[0] >> 4 == 4 else (8, 16)
    return packet[:at] + packet[at + size:at + 2 * size] + packet[at:at + size] + packet[at + 2 * size:]


def is_request(packet):
    """Whether the packet carries data for the peer's port."""
    head = 20 if packet[0] >> 4 == 4 else 40
    return len(packet) > head + 32 and struct.unpack_from(">H", packet, head + 2) == (PORT,)  # TCP headers have 32 bytes


def reflect(device, delay, lose_each):
    waiting, requests = [], collections.Counter()  # number of requests by first byte of the packet, i.e. by IP version
    while True:
        timeout = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([device], [], [], timeout)[0]:
            packet = os.read(device, 65536)
            requests[packet[0]] += is_request(packet)
            if not is_request(packet) or requests[packet[0]] % lose_each:
                waiting.append((time.monotonic() + delay, packet))
        while waiting and waiting[0][0] <= time.monotonic():
            os.write(device, swapped(waiting.pop(0)[1]))


def answer(listener):
    def echo(connection):
        while data := connection.recv(4096):
            connection.sendall(data)
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()


def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)


def tcp_statistics(one):
    """Fields of struct tcp_info, read by offset."""
    info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    rtt, retransmits, resent_bytes = struct.unpack_from("I", info, 68)[0], struct.unpack_from("I", info, 100)[0], struct.unpack_from("Q", info, 208)[0]
    received, = struct.unpack_from("Q", info, 128)
    arrived, segments = struct.unpack_from("2I", info, 152)
    sent, = struct.unpack_from("Q", info, 200)
    return {"rtt_us": rtt, "retransmits": retransmits, "received_bytes": received, "segments_received": arrived,
            "segments": segments, "sent_bytes": sent - resent_bytes}


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
    time.sleep(0.1)  # until the last acknowledgement has arrived
    pathlib.Path("asked.new").write_text(json.dumps({address: tcp_statistics(one) for address, one in sockets.items()}))
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
