# SPDX-License-Identifier: Apache-2.0
"""cudagap --tcp: statistics of a process's connections by peer, compared with values that the process reads itself, and
the verdicts of --why about them."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import harness
from gaps import case
from harness import check, equal, wait_until
from programs import Tool, kill_at_end


class FarPeer:
    def __init__(self, milliseconds, lose_each):
        if not (os.path.exists("/dev/net/tun") and shutil.which("ip")):
            raise harness.Skip("needs /dev/net/tun and ip")
        command = [sys.executable, pathlib.Path(__file__).parent / "far_peer.py", harness.standin / "libcuda.so.1",
                   str(milliseconds), str(lose_each)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        kill_at_end(self.process)
        self.pid = int(self.process.stdout.readline() or 0)
        check(self.pid, "the trainer could not create its network")
        wait_until(lambda: os.path.exists("up"), "the trainer is up")

    def asked(self):
        open("go", "w").close()
        wait_until(lambda: os.path.exists("asked"), "the trainer has finished its requests", 60)
        return json.loads(pathlib.Path("asked").read_text())

    def end(self):
        open("end", "w").close()
        equal(self.process.wait(30 * harness.patience), 0, "exit status")


keys = "segments", "retransmits", "sent_bytes", "received_bytes", "segments_received"


@case
def a_far_peer():
    """A peer with a round trip of 20 ms loses every fourth request, over IPv4 and IPv6: sums of reports are exact."""
    peer = FarPeer(20, 4)
    tool = Tool("-p", peer.pid, "--tcp", "-i", "0.3")
    why = Tool("-p", peer.pid, "--why", "-d", "30", json=False)
    wait_until(lambda: len(tool.rows) >= 2, "rows of both connections")
    statistics = peer.asked()
    def sums():
        """Sums of all rows by address."""
        sums = {}
        for row in tool.rows:
            one = sums.setdefault(row["peer"], dict.fromkeys(keys, 0))
            for key in keys:
                one[key] += row[key]
        return sums
    want = {address: {key: one[key] for key in keys} for address, one in statistics.items()}
    wait_until(lambda: sums() == want, f"{want}, and {sums()}")
    text = why.stop().text
    peer.end()
    last = {row["peer"]: row for row in tool.finish().rows}
    for address, one in statistics.items():
        row = last[address]
        equal((row["pid"], row["connections"], row["peer_port"]), (peer.pid, 1, 9000), f"{row}")
        equal((row["rtt_p50_ns"], row["rtt_p95_ns"]), (one["rtt_us"] * 1000,) * 2, f"round trip to {address}")
        check(row["rtt_p50_ns"] >= 19e6 and one["retransmits"] >= 1, f"round trip or retransmits are too small: {row}")
    check(re.search(r"% of TCP segments to (10\.9\.0\.2|\[fd09::2\]):9000 were retransmitted \(\d+ of \d+\)", text), f"no verdict on lost segments: {text}")
    check(re.search(r"the round trip to (10\.9\.0\.2|\[fd09::2\]):9000 takes \d\d+\.\d ms", text), f"no verdict on the round trip: {text}")
