# SPDX-License-Identifier: Apache-2.0
"""ncclwait's verdicts: missing ranks, mismatches, stuck communicators, RAS; and no verdict if nothing hangs."""
import json
import os
import pathlib
import signal
import socket
import threading
import time

from harness import check, equal, wait_until
from programs import Tool
from ranks import Ranks, case

stalled = "--stalled", "1"


def verdicts(count, script, *arguments, targets=None):
    ranks = Ranks(count, script)
    tool = Tool(*(targets or ranks.targets), *stalled, *arguments)
    ranks.go().wait()
    return [event for event in tool.finish().events if "verdict" in event], ranks


def check_fields(event, **want):
    equal({key: event.get(key) for key in want}, want, f"{event}")
    check(len(event["communicator"]) == 16, f"unexpected communicator: {event}")


def in_order(words, text):
    at = -1
    for word in words:
        at = text.find(word, at + 1)
        check(at >= 0, f"'{word}' in '{text}'")


# Activities of a rank that has not entered the collective: (step of the script, words of the verdict).
instead = {
    "it waits": ("hang 2600", "in cuStreamSynchronize"),
    "it sleeps": ("sleep 2600", "not in an NCCL call, and not waiting for the GPU; thread"),
    "it is in the call": ("call A ncclAllReduce 1 count=1000 block=2600", "in ncclAllReduce"),
}


@case(each={name: name for name in instead})
def missing(name):
    step, words = instead[name]
    rest = "" if "call" in step else "call A ncclAllReduce 1 count=1000;"
    found, ranks = verdicts(4, f"comm A; call A ncclAllReduce 5 count=1000; barrier; only 2; {step}; {rest} end; "
                               "except 2; call A ncclAllReduce 1 count=1000; end; barrier; destroy A")
    verdict, = found
    check_fields(verdict, verdict="missing", verdict_ranks="2", sequence=6, ranks_here=4, ranks=4, join="exact")
    check(1e9 <= verdict["waited_ns"] < 2.6e9, f"unexpected waiting time: {verdict}")
    in_order(["rank 2 has not entered AllReduce", "(collective 6)", "ranks 0-1,3 have been waiting for"], verdict["text"])
    doing, = verdict["doing"]
    in_order([f"rank 2 (process {ranks.pids[2]}): ", words, "; its last collective in this communicator was AllReduce, "], doing)


@case
def missing_because_it_is_stopped():
    ranks = Ranks(2, "comm A; call A ncclAllReduce 5 count=1000; barrier; only 1; touch {up}.late; sleep 600; end; "
                     "call A ncclAllReduce 1 count=1000; barrier; destroy A")
    tool = Tool(*ranks.targets, *stalled)
    ranks.go()
    wait_until(pathlib.Path(f"{ranks.up_file}.late").exists, "rank 1 sleeps")
    os.kill(int(ranks.pids[1]), signal.SIGSTOP)
    try:
        verdict = wait_until(lambda: [event for event in tool.events if "verdict" in event], "the verdict")[0]
    finally:
        os.kill(int(ranks.pids[1]), signal.SIGCONT)
    ranks.wait()
    tool.finish()
    check_fields(verdict, verdict="missing", verdict_ranks="1", sequence=6)
    in_order(["rank 1 ", "; it is stopped by a signal"], verdict["doing"][0])


@case
def missing_because_of_another_communicator():
    """Two ranks wait for each other, in different communicators."""
    script = """comm A; comm B; barrier; only 0; call A ncclAllReduce 1; hang 2600; call B ncclAllGather 1; end
                only 1; call B ncclAllGather 1; hang 2600; call A ncclAllReduce 1; end; barrier; destroy A; destroy B"""
    found, _ = verdicts(2, script)
    by_rank = {verdict["verdict_ranks"]: verdict for verdict in found}
    equal((len(found), set(by_rank)), (2, {"0", "1"}), f"{found}")
    for rank, operation, other in ("1", "AllReduce", "0"), ("0", "AllGather", "1"):
        check_fields(by_rank[rank], verdict="missing", sequence=1)
        in_order([f"rank {rank} has not entered {operation}"], by_rank[rank]["text"])
        in_order(["it has entered no collective of this communicator", f"of communicator {by_rank[other]['communicator']}"],
                 by_rank[rank]["doing"][0])


different = {"count=2000": "of 2000 float32, sum", "type=1": "of 1000 uint8, sum", "reduction=2": "of 1000 float32, max"}


@case
def mismatches():
    """One verdict for each mismatch, and none for matching collectives."""
    script = "comm A; comm B; call A ncclAllReduce 3 count=1000;"
    for other in different:
        script += f"""only 1; call A ncclAllReduce 1 {"" if "count" in other else "count=1000"} {other}; end
                      except 1; call A ncclAllReduce 1 count=1000; end; call A ncclAllReduce 2 count=1000;"""
    script += """only 1; call B ncclBroadcast 1 root=1; end; except 1; call B ncclBroadcast 1; end; call B ncclBcast 1
                 only 1; call B ncclAllGather 1; end; except 1; call B ncclReduce 1; end; barrier; destroy A; destroy B"""
    found, _ = verdicts(3, script)
    equal([verdict["verdict"] for verdict in found], ["mismatch"] * 5, f"{found}")
    words = [*(["ranks 0,2 call AllReduce of 1000 float32, sum; rank 1 calls AllReduce " + other] for other in different.values()),
             ["root 0; rank 1 calls Broadcast", "root 1"], ["call Reduce", "rank 1 calls AllGather"]]
    equal([verdict["sequence"] for verdict in found], [4, 7, 10, 1, 3], "collectives")
    for verdict, expected in zip(found, words):
        check_fields(verdict, verdict_ranks="1", join="exact")
        in_order(expected, verdict["text"])


@case
def stuck():
    found, ranks = verdicts(4, "comm A; call A ncclAllReduce 7 count=1000; hang 4200; barrier; destroy A", "-U")
    verdict, = found
    check_fields(verdict, verdict="stuck", sequence=7, ranks_here=4, ranks=4)
    check("verdict_ranks" not in verdict and verdict["waited_ns"] >= 1e9, f"{verdict}")
    in_order(["all 4 ranks on this machine have entered AllReduce", "(collective 7)", "ranks 0-3 are waiting for the GPU"], verdict["text"])
    equal([line.split(":")[0] for line in verdict["doing"] if line.startswith("rank")],
          [f"rank {rank} (process {pid})" for rank, pid in enumerate(ranks.pids)], "waiting ranks")
    check(any(line.startswith("    ") and "(ranks)" in line for line in verdict["doing"]), f"no stack: {verdict}")


@case
def rank_has_exited():
    found, _ = verdicts(3, "comm A; call A ncclAllReduce 4; barrier; only 1; exit; end; call A ncclAllReduce 2; sleep 3500")
    verdict, = found
    check_fields(verdict, verdict="missing", verdict_ranks="1", sequence=5)
    in_order(["its process has exited"], verdict["doing"][0])


@case
def nothing_hangs():
    """No verdict for lateness below the limit, for waits that return, or for pauses with neither calls nor waits."""
    found, _ = verdicts(3, """comm A; call A ncclAllReduce 5; only 1; sleep 700; end; call A ncclAllReduce 3
                              repeat 26; hang 100; end; call A ncclAllReduce 1; sleep 2600; barrier; destroy A""")
    equal(found, [], "verdicts")


@case
def in_text():
    ranks = Ranks(2, "comm A; call A ncclAllReduce 1; only 1; sleep 2600; end; call A ncclAllReduce 1; barrier; destroy A")
    tool = Tool(*ranks.targets, *stalled, json=False)
    ranks.go().wait()
    lines = tool.finish().text.splitlines()
    equal(lines[0].split(), ["TIME", "COMMUNICATOR", "VERDICT"], "header")
    check("missing: rank 1 has not entered AllReduce" in lines[1] and lines[2].startswith("    rank 1 (process "), f"{lines}")


class Ras:
    """A stand-in for NCCL's RAS service, which reports what `communicators` returns."""

    def __init__(self, communicators):
        self.communicators = communicators
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            with self.socket.accept()[0] as client:
                lines = client.makefile("rb")
                while lines.readline() not in (b"STATUS\n", b""):
                    pass
                time.sleep(0.2)  # the tool's last verdict must have arrived, since communicators() may use it
                text = json.dumps({"nccl_version": "2.29.7", "communicators": self.communicators()}, indent=2)
                client.sendall(b"SERVER PROTOCOL 2\nOK\n" + text.encode() + b"\n")
                client.shutdown(socket.SHUT_RDWR)


def ras_rank(rank, count, host="10.0.0.1"):
    return {"rank": rank, "host": host, "pid": 4000 + rank, "collective_counts": {"AllReduce": count}}


@case
def ranks_on_other_hosts():
    """RAS verdicts on two communicators: one hangs during the run and spans two hosts, the other already hung before
    the run."""
    dead = {"rank": 3, "host": "\x1b[2J\"", "pid": 4003, "status": {"considered_dead": True}}
    before = {"hash": "0xabc", "size": 4, "ranks": [ras_rank(0, 7), ras_rank(1, 7), ras_rank(2, 6)], "missing_ranks": [dead]}
    ranks = Ranks(2, """comm A; call A ncclAllReduce 1; only 1; wait {up}2; end; call A ncclAllReduce 1; barrier; destroy A""")
    verdicts_of = lambda kind: [event for event in tool.events if event.get("verdict") == kind]
    ras = Ras(lambda: [before, *({"hash": "0x" + one["communicator"], "size": 2, "ranks": [ras_rank(0, 2), ras_rank(1, 1, "10.0.0.2")],
                                  "missing_ranks": []} for one in verdicts_of("missing"))])
    tool = Tool(*ranks.targets, *stalled, "--ras", ras.port)
    ranks.go()
    wait_until(lambda: len(verdicts_of("ras")) == 2, "both verdicts")
    ranks.up_file.with_suffix(".up2").touch()
    ranks.wait()
    tool.finish()
    missing, = verdicts_of("missing")
    by_communicator = {event["communicator"]: event for event in verdicts_of("ras")}
    old, now = by_communicator["0000000000000abc"], by_communicator[missing["communicator"]]
    check_fields(old, verdict_ranks="2,3", ranks=4, ranks_here=0)
    equal(old["doing"], ["rank 2 (process 4002 on 10.0.0.1) has launched 6 of 7 AllReduce",
                         "rank 3 (process 4003 on \x1b[2J\") is considered dead"], "missing ranks")
    check_fields(now, verdict_ranks="1", ranks=2, ranks_here=2, sequence=2)
    equal(now["doing"], ["rank 1 (process 4001 on 10.0.0.2) has launched 1 of 2 AllReduce"], "missing ranks")
