# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's NCCL, and RCCL. Without a device there are no communicators, but the code is the same as on any machine: it
determines where probes are placed, and the offset of a communicator's rank."""
import collections
import re

from harness import Skip, case, check, equal
from programs import Tool
from vendor import Caller, each, exports, fetched_file, inspect, placements

# {folder: (version, offset in ncclCommUserRank according to a disassembler, minimum number of functions that need no
# single-stepping)}. RCCL 5.4.3 is older than NCCL 2.16, and its communicators have no id that all ranks share.
nccl_versions = {"2.22": ("2.22.3", "0x34250", 30), "2.29": ("2.29.7", "0x1206d8", 58)}


def place_all(path, emulated):
    found = placements(path, [name for name in exports(path, "TW") if re.match("nccl[A-Z]", name)])
    stepped = [one["name"] for one in found if not one["emulated"]]
    print(f"   {path.name}: {len(found)} functions, {len(stepped)} single-stepped")
    check(len(found) - len(stepped) >= emulated, f"single-stepped functions, of {len(found)}: {stepped}")


@case(each=each(nccl_versions), tool="ncclwait")
def nccl(folder):
    path = fetched_file(f"nccl/{folder}/libnccl.so.2")
    version, offset, emulated = nccl_versions[folder]
    place_all(path, emulated)
    if not path.resolve().name.endswith(version):
        raise Skip(f"{path.resolve().name} is another version: {inspect('identity', path)}")
    equal(inspect("identity", path), offset, f"offset of the rank in communicators of NCCL {version}")


# NCCL needs a newer C library than Debian 12 has.
def loader():
    libc = fetched_file("libc/ld-linux-x86-64.so.2")
    return libc, "--library-path", f"{libc.parent}:/usr/lib/x86_64-linux-gnu"


int8, float16, float32 = 0, 6, 7
no_communicator, stream, send, receive = 0, 0, 0x10000, 0x20000
# {operation: (calls, arguments, bytes)}. The bytes of AllGather depend on the number of ranks, which is unknown.
made = {
    "AllReduce": (3, (send, receive, 77, float32, 0, no_communicator, stream), 308),
    "Broadcast": (4, (send, receive, 1001, float16, 3, no_communicator, stream), 2002),
    "AllGather": (5, (send, receive, 13, int8, no_communicator, stream), None),
    "Send": (6, (send, 99, float32, 1, no_communicator, stream), 396),
}


@case(each=each(nccl_versions), tool="ncclwait")
def calls_that_fail(folder):
    """Calls without a communicator fail, and are reported with their arguments."""
    path = fetched_file(f"nccl/{folder}/libnccl.so.2")
    caller = Caller(path, loader=loader())
    table, lines = (Tool("-p", caller.pid, "-x", *mode, losses=True) for mode in ([], ["-e"]))
    for op, (times, words, _) in made.items():
        answers = caller.ask(f"words {times} nccl{op} {' '.join(map(str, words))}")
        equal([answer["result"] for answer in answers], [4] * times, op)
    caller.end()
    equal({row["op"]: (row["result"], row["errors"]) for row in table.finish().rows},
          {op: ("ncclInvalidArgument", times) for op, (times, *_) in made.items()}, "rows")
    equal(collections.Counter((event["op"], event.get("bytes")) for event in lines.finish().events),
          {(op, size): times for op, (times, _, size) in made.items()}, "lines")


@case(tool="ncclwait")
def rccl():
    path = fetched_file("rccl/librccl.so.1")
    place_all(path, 20)
    equal(inspect("identity", path), "unknown", "offset of the rank in communicators of RCCL")
