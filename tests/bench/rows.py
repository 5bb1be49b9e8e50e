# SPDX-License-Identifier: Apache-2.0
"""Configurations that the benchmark measures: empty probes, the tools in many modes, other tools, and building blocks
of probe handlers."""
import dataclasses
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build")).resolve()
TOOLS = re.search(r"^TOOLS *:= *(.*)", (ROOT / "Makefile").read_text(), re.M)[1].split()
FLOOR = sys.executable, "-B", pathlib.Path(__file__).with_name("floor.py"), BUILD / "gen/blocks.bpf.o"
NCCL, RUNTIME = BUILD / "standin/libnccl.so.2", BUILD / "standin/libcudart.so.12"

FUNCTION = "cuLaunchKernel"
RUNTIME_LAUNCH = "cudaLaunchKernel"  # calls cuLaunchKernel
COPY, COPY_ANYWHERE, WAIT, GRAPH = "cuMemcpyHtoDAsync_v2", "cuMemcpyAsync", "cuStreamSynchronize", "cuGraphLaunch"
COLLECTIVE = "ncclAllReduce"
ALLOC_AND_FREE = "cuMemAlloc_v2+cuMemFree_v2"  # one call of each
PYTHON_FRAMES = 5, 20, 40

SAMPLE_S = 0.1  # duration of a measurement, seconds
BURST_S = 0.02  # the same for -e; the ring buffer holds all events of this time, so the reader's speed does not matter

COUNT_JSON = r'"launches":(\d+)'
COPIES_JSON = r'"(?:copies|errors)":(\d+)'  # without a GPU NVIDIA's copies fail, and -l counts errors
GRAPHS_JSON = r'"(?:launches|errors)":(\d+)'
DIRECT_JSON = r'"direct_launches":(\d+)'
CALLS_JSON = r'"calls":(\d+)'
# Without a GPU, NVIDIA's allocations fail, and the target frees unknown addresses.
ALLOCATIONS_JSON = r'"(?:allocs|frees|failures|unknown_frees)":(\d+)'

# On a CPU with Safe RET each call and return of a BPF helper costs about 7 ns more, so bounds are higher there.
VULNERABILITIES = pathlib.Path("/sys/devices/system/cpu/vulnerabilities")
SAFE_RET = any("Safe RET" in file.read_text() for file in VULNERABILITIES.glob("spec_rstack_overflow"))


@dataclasses.dataclass(frozen=True)
class Bound:
    relation: str
    factor: float
    base: str  # name of the row to divide by

    def __str__(self):
        return f"{self.relation} {self.factor:g} x {self.base}"

    def holds(self, factor):
        return factor <= self.factor if self.relation == "<=" else factor >= self.factor


@dataclasses.dataclass(frozen=True)
class Row:
    """Configuration to measure. In `command`, $pid is the target's process id, $lib its copy of the library, and $other
    the id of an idle process with the same library. $slow is the offset of the function (or of both functions). $fast
    is the offset of an instruction in it that the kernel emulates."""
    label: str
    command: tuple = ()
    name: str = ""  # name by which `floor` and `bound` of other rows refer to this row
    function: str = FUNCTION  # function that the target calls
    floor: str = ""  # name of the row to divide by
    bound: Bound | None = None
    count_pattern: str = ""  # regular expression; its numbers in the output add up to the calls made
    seconds: float = SAMPLE_S
    package: str = ""  # Debian package that has the command
    library: pathlib.Path | None = None  # library that has the function, if the driver does not
    python_frames: int = 0  # number of Python frames that the target is called from
    is_block: bool = False


def at_most(safe_ret, base, elsewhere=None):
    return Bound("<=", safe_ret if SAFE_RET or elsewhere is None else elsewhere, base)


def label_suffix(fields):
    """End of a row's label: the function, if it is not cuLaunchKernel, and the number of Python frames."""
    function = f" ({fields['function'].replace('+', ', ')})" if "function" in fields else ""
    return f"{function} ({fields['python_frames']} frames of Python)" if "python_frames" in fields else function


def untraced(name, **fields):
    return Row(f"untraced{label_suffix(fields)}", name=name, **fields)


def empty(kind, label, where="$fast", **fields):
    return Row(f"empty {label}{label_suffix(fields)}", (*FLOOR, "nothing", kind, "$pid", "$lib", where), **fields)


def empty_entry(name, **fields):
    return empty("entry", "uprobe at the emulated instruction", name=name, **fields)


def empty_pair(name, **fields):
    return empty("pair", "entry and return at the emulated instruction", name=name, **fields)


def tool(arguments, floor, target="-p $pid", name="cudalaunch", bound_name="", most=None, **fields):
    """Row of a tool. `most`: bound of the factor to the floor, or (with Safe RET, elsewhere)."""
    command = f"{arguments} {target}".strip()
    if most is not None:
        safe_ret, elsewhere = most if isinstance(most, tuple) else (most, None)
        fields["bound"] = at_most(safe_ret, floor, elsewhere)
    json_output = ["--json"] if fields.get("count_pattern") else []
    return Row(f"{name} {command}{label_suffix(fields)}".replace("$pid", "PID").replace("$other", "OTHER"),
               (BUILD / name, *json_output, *command.split()), name=bound_name, floor=floor, **fields)


def other_process(name, floor, **fields):
    """A call in another process than the traced one."""
    return tool("", floor, "-p $other", name=name, **{"most": 1.05, "count_pattern": "", **fields})


def with_defaults(name, **defaults):
    """A function that makes rows of a tool."""
    return lambda arguments, floor, **fields: tool(arguments, floor, **{"name": name, **defaults, **fields})


copies = with_defaults("cudamemcpy", function=COPY, count_pattern=COPIES_JSON)
waits = with_defaults("cudasync", function=WAIT, count_pattern=CALLS_JSON)
graphs = with_defaults("cudagraph", function=GRAPH, count_pattern=GRAPHS_JSON)
allocations = with_defaults("gpualloc", function=ALLOC_AND_FREE, count_pattern=ALLOCATIONS_JSON)
collectives = with_defaults("ncclwait", function=COLLECTIVE, library=NCCL, count_pattern=CALLS_JSON, seconds=BURST_S)


def top(arguments, floor, *keys, **fields):
    # Counts only rows by pid, since each interval begins with a row that is their sum.
    pattern = ".*".join(['"by":"pid"', *(rf'"{key}":(\d+)' for key in keys)])
    return tool(f"{arguments} 1".strip(), floor, name="cudatop", count_pattern=pattern, **fields)


def bpftrace(label, program, **fields):
    # The probe is at the first byte: Debian's bpftrace lacks the disassembler that it needs to check an offset.
    return Row(f"bpftrace, {label}", ("bpftrace", "-p", "$pid", "-e", program), package="bpftrace", **fields)


# Programs of blocks.bpf.c, and their descriptions.
BLOCKS = {
    "nothing": "empty program", "guard": "disable and enable preemption", "task": "current task and its process id",
    "cookie": "cookie of the probe", "clock": "time in ns", "jiffies": "time in jiffies", "comm": "name of the thread",
    "array_lookup": "lookup in an array", "hash_lookup": "lookup in a hash, key of 8 bytes",
    "row": "lookup in a per-CPU hash, key of 24 bytes", "task_storage": "lookup in task storage",
    "read_8": "read 8 bytes of user memory", "read_24": "read 24 bytes of user memory",
    "read_2048": "read 2 KiB of user memory into a map", "stack_id": "user stack, walked by the kernel",
    "ring_128": "128 bytes to the ring buffer", "line": "reserve and publish a line of -e",
    "hash_entry": "insert 56 bytes into a hash, and delete them",
}


def block(name):
    return Row(f"blocks: {BLOCKS[name]}", (*FLOOR, name, "entry", "$pid", "$lib", "$fast"), floor="entry",
               seconds=BURST_S, is_block=True)


LATENCY = ("uprobe:$lib:$function { @start[tid] = nsecs; } "
           "uretprobe:$lib:$function /@start[tid]/ { @ns[tid] = hist(nsecs - @start[tid]); delete(@start[tid]); }")

ROWS = (
    untraced("untraced"),
    empty_entry("entry"),
    empty("perf", "uprobe at the emulated instruction, perf event", floor="entry"),
    empty_pair("pair"),
    empty("session", "session at the emulated instruction", floor="pair"),
    empty("entry", "uprobe at the first byte", "$slow", floor="entry"),
    tool("", "entry", bound_name="count", most=(1.28, 1.15), count_pattern=COUNT_JSON),
    tool("--by pid", "entry", most=(1.10, 1.05), count_pattern=COUNT_JSON),
    tool("-l", "pair", bound_name="latency", most=(1.28, 1.18), count_pattern=COUNT_JSON),
    tool("-l --by pid", "pair", most=1.18, count_pattern=COUNT_JSON),
    tool("-x", "pair"),
    tool("-H gap", "entry"),
    tool("-U", "entry", most=1.55),
    *(row for frames in PYTHON_FRAMES for row in (
        empty_entry(f"entry below {frames}", python_frames=frames),
        tool("-U", f"entry below {frames}", python_frames=frames))),
    tool("-e", "entry", most=(1.42, 1.30), seconds=BURST_S),
    other_process("cudalaunch", "untraced"),
    empty_entry("runtime entry", function=RUNTIME_LAUNCH, library=RUNTIME),
    tool("--api both", "runtime entry", function=RUNTIME_LAUNCH, library=RUNTIME, count_pattern=COUNT_JSON),
    copies("", "entry", most=1.10),
    copies("", "entry", function=COPY_ANYWHERE),
    copies("--by memory", "entry"),
    copies("-l", "pair", most=1.20),
    copies("-e", "entry", most=(1.42, 1.30), seconds=BURST_S, count_pattern=""),
    waits("", "pair", most=1.20),
    waits("-U", "pair"),
    waits("-e", "pair", seconds=BURST_S, count_pattern=""),
    untraced("both untraced", function=ALLOC_AND_FREE),
    empty("pair", "entry and return of both", name="both", function=ALLOC_AND_FREE),
    allocations("", "both", most=1.38),
    allocations("--by kind", "both", most=1.38),
    allocations("--by stack", "both"),
    allocations("-x", "both", count_pattern=""),
    allocations("-e", "both", seconds=BURST_S, count_pattern=""),
    other_process("gpualloc", "both untraced", function=ALLOC_AND_FREE),
    untraced("graph untraced", function=GRAPH),
    empty_entry("graph entry", function=GRAPH),
    empty_pair("graph pair", function=GRAPH),
    graphs("--summary", "graph entry", most=1.10),
    graphs("", "graph pair", most=1.22),
    graphs("-e", "graph pair", seconds=BURST_S, count_pattern=""),
    other_process("cudagraph", "graph untraced", function=GRAPH),
    graphs("", "entry", function=FUNCTION, count_pattern=""),
    graphs("--summary", "entry", function=FUNCTION, count_pattern=DIRECT_JSON),
    tool("", "pair", name="cudagap"),
    tool("--cheap", "pair", name="cudagap"),
    tool("-H gap", "pair", name="cudagap"),
    untraced("nccl untraced", function=COLLECTIVE, library=NCCL),
    empty_pair("nccl pair", function=COLLECTIVE, library=NCCL),
    collectives("", "nccl pair", most=1.20),
    other_process("ncclwait", "nccl untraced", function=COLLECTIVE, library=NCCL, seconds=BURST_S),
    top("", "entry", "launches", most=1.15),
    top("--cheap", "entry", "launches"),
    top("--latency", "pair", "launches", "errors"),
    top("", "entry", "copies", function=COPY, most=1.15),
    top("", "pair", "waits", function=WAIT, most=1.20),
    bpftrace("count", "uprobe:$lib:$function { @calls = count(); }", floor="entry", bound=Bound(">=", 20, "count"),
             count_pattern=r"@calls: (\d+)"),
    bpftrace("latency histogram", LATENCY, floor="pair", bound=Bound(">=", 1, "latency")),
    Row("bcc funclatency", ("funclatency", "-p", "$pid", "cuda:$function"), floor="pair",
        bound=Bound(">=", 1, "latency"), package="libbpf-tools"),
    *map(block, BLOCKS),
)


def chosen_rows(pattern):
    """Returns the rows whose label matches, and the rows that these are compared to."""
    wanted = [row for row in ROWS if re.search(pattern, row.label)]
    needed = {"untraced"} | {row.floor for row in wanted} | {row.bound.base for row in wanted if row.bound}
    return [row for row in ROWS if row in wanted or row.name and row.name in needed]
