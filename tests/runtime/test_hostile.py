# SPDX-License-Identifier: Apache-2.0
"""Hostile names: traced programs choose the names of their threads and kernels."""
import re
import signal

from harness import case, check, equal, wait_until
from programs import Tool, Workload
from truth import Rows, expected, same_counts

# At most 15 bytes each: escape sequences, newlines, quotes, invalid UTF-8, and Unicode characters that end a line or
# change the direction of text.
comms = [r"\x1b[2J\x1b[31mx", r"a\nb\x0dc\td", r'"\\",\x22}', r"\xff\xfe\x80", r"\xe2\x80\xae-abc", r"\x7f\x07\x08",
         r"\x9b31m", r"\xe2\x80\xa8\xd8\x9c\xe2\x80\x8e-", r"{"]
kernels = [r"evil\x1b]0\x3bx\x07", r"new\nline", r'qu"ote\\', r"\xff\xc0bad", r"_ZN\x1b[2JE", r"%s%n%d",
           r"\xe2\x80\xa9\xe2\x80\x8f-\xe2\x81\xa9", r"{}{0}"]

script = "\n".join(f"name {comm}\nlaunch {kernel} {10 + i} grid={i + 1}"
                   for i, (comm, kernel) in enumerate(zip(comms, kernels + ["plain"])))


def as_json_shows(text):
    """Returns the text that a JSON reader must get for these bytes. The truth has one code point per byte."""
    return text.encode("latin-1").decode("utf-8", "replace")


# Non-ASCII characters that end lines or change the direction of text.
text_controls = r"\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"


def no_control_bytes(tool, replacement="\ufffd"):
    for stream, data in ("standard output", tool.out_file.read_bytes()), ("standard error", tool.error_file.read_bytes()):
        bad = re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", data) or re.search(f"[{text_controls}{replacement}]",
                                                                           data.decode("utf-8", "replace"))
        check(not bad, f"{stream} of {tool} has {bad and bad[0]!r}: {data[:300]}")


def no_control_bytes_in_json(tool):
    no_control_bytes(tool, replacement="")  # in JSON, U+FFFD is allowed: it replaces invalid UTF-8


@case(each={"table": ["--by", "thread,kernel"], "comm": ["--by", "comm"], "events": ["-e"], "stacks": ["-U", "-v"],
            "histogram": ["-H", "grid", "--by", "kernel,thread"], "full": ["--names=full", "-r", "0"]}, asan=True)
def text_stays_text(mode):
    workload = Workload(script, "workload-driver")
    tool = Tool("-p", workload.pid, *mode, json=False)
    workload.go().wait()
    no_control_bytes(tool.finish())
    heads = len([line for line in tool.lines if "COMM" in line or "KERNEL" in line])
    if mode == ["-e"]:
        equal(len(tool.lines) - heads, sum(10 + i for i in range(len(comms))), "lines")
    if mode[0] == "--names=full":
        equal(len(tool.lines) - heads, len(comms), "lines")


@case(asan=True)
def json_stays_json():
    """Each event has the name of its thread at that time, whatever its bytes."""
    workload = Workload(script, "workload-driver")
    events, rows = Tool("-p", workload.pid, "-e"), Tool("-p", workload.pid, "--by", "thread,kernel")
    workload.go()
    truth = workload.truth()
    got = sorted({(event["comm"], event.get("kernel")) for event in events.finish().events})
    equal(got, sorted({(as_json_shows(call["comm"]), as_json_shows(call["demangled"])) for call in truth}), "names of threads and kernels")
    for call in truth:
        call["demangled"] = as_json_shows(call["demangled"])
    same_counts(rows.finish(), truth, by=("tid", "kernel"))
    for tool in events, rows:
        no_control_bytes_in_json(tool)


@case(alone=True)
def filter_by_a_hostile_name():
    """-n compares bytes."""
    workload = Workload(r"name \x1b[31m\xff; launch vecadd 101; name other; launch vecadd 7")
    tool = Tool("-n", b"\x1b[31m\xff".decode("utf-8", "surrogateescape"), "--by", "pid,kernel")
    workload.go()
    truth = [call for call in workload.truth() if call["comm"] != "other"]
    equal(Rows(truth).count(tool.stop().rows, ("pid",)), expected(truth, ("pid",)), "launches")


@case
def very_long_names():
    """Names of C++ templates can be kilobytes long. 4,096 bytes are kept, and tables stay narrow."""
    lengths = {10 + i: n for i, n in enumerate((100, 118, 119, 120, 1000, 1014, 1015, 1016, 4000, 5000, 20000))}
    workload = Workload("\n".join(f"launch _Z{n}{'k' * n}Pfi {count}" for count, n in lengths.items()),
                        "workload-driver")
    tool, table = Tool("-p", workload.pid), Tool("-p", workload.pid, json=False)
    workload.go().wait()
    got = {row["launches"]: row.get("kernel", "") for row in tool.finish().rows}
    equal(set(got), set(lengths), "counts")
    for count, n in lengths.items():
        whole = got[count] == "k" * n + "(float*, int)"
        cut = n > 4000 and "k" * 4000 in got[count] and len(got[count]) <= 4096
        check(whole or cut, f"kernel of {n} letters: {len(got[count])} bytes, {got[count][:20]}...{got[count][-20:]}")
    widest = max(len(line) for line in table.finish().lines)
    check(widest < 160, f"a line of the table has {widest} characters")


@case
def many_names():
    """A program that invents names as fast as it can neither stops the tool nor delays its signals."""
    steps = "\n".join(f"launch made_up_{i} 1" for i in range(3000))
    workload = Workload(steps + "\nforever; launch made_up_1 100; lookup made_up_2; end", "workload-driver")
    tool = Tool("-p", workload.pid, "1", losses=True)
    workload.go()
    wait_until(lambda: len(tool.rows) > 3001, "rows of two intervals")
    tool.stop(signal.SIGTERM)
    workload.stop()
    equal(len({row.get("kernel") for row in tool.rows} & {f"made_up_{i}" for i in range(3000)}), 3000, "names")


@case(each={"table": ["--by", "thread,graph"], "events": ["-e"], "storms": ["--storms", "1", "--warm-up", "0"]}, asan=True,
      tool="cudagraph")
def names_in_graphs(mode):
    """Process names with escape sequences, newlines or invalid UTF-8 are escaped."""
    one = "graph instantiate G X; graph launch X 2; graph launch X result=700; graph execdestroy X"
    steps = "graph create G; graph add G kernel\n" + "\n".join(f"name {comm}\n{one}" for comm in comms)
    for comm in comms[0], comms[3]:
        workload = Workload(f"{steps}; name {comm}; sleep 1200", "workload-driver")
        tools = [Tool("-p", workload.pid, *mode, json=json) for json in (False, True)]
        workload.go().wait()
        no_control_bytes(tools[0].finish())
        no_control_bytes_in_json(tools[1].finish())
        check(tools[0].text.strip() and len(tools[1].records) > 3, f"{tools[1]}: no output")
