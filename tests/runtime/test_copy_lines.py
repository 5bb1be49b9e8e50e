# SPDX-License-Identifier: Apache-2.0
"""cudamemcpy -e: one line per copy, and per element of a batch, with exact values."""
from collections import Counter

from copies import callable_functions, case, is_copy, field_of, sizes, steps, trace
from harness import check, equal
from programs import Tool, Workload
from truth import layer_wanted

memory = "alloc d 1000000; alloc h 1000000 fn=host; alloc p 1000000 fn=cuMemHostAlloc; alloc m 4096 fn=cuMemAllocManaged\n"

script = memory + steps(callable_functions("driver")) + """
copy 7 fn=cuMemcpy src=h dst=d bytes=3; copy 5 fn=cuMemcpyAsync src=d dst=p bytes=70001 stream=2
copy 3 fn=cuMemcpyBatchAsync src=p dst=d sizes=1,2,3,4 stream=1; copy 2 fn=cuMemcpyBatchAsync sizes=none
copy 4 fn=cuMemcpy src=m dst=h; copy 11 bytes=77 result=719; copy 13 fn=cudaMemcpyAsync bytes=88 runtime_result=2
capture begin; copy 6 fn=cuMemcpyAsync stream=1; copy 3 fn=cuMemsetD8Async stream=1; capture end
threads 3; repeat 20; copy 2 bytes=10; copy 1 fn=cudaMemset bytes=20; end; end
"""


def events_of(truth, api, *more):
    out = Counter()
    for call in truth:
        if is_copy(call) and layer_wanted(call, api):
            key = (call["pid"], call["tid"], call["comm"], call["layer"], call["stream"], int(call["recorded"]),
                   call["function"], field_of(call, "kind"), field_of(call, "form"),
                   field_of(call, "source") if call["kind"] == "copy" else None, field_of(call, "destination"))
            values = tuple(call[field] for field in more)
            for size in sizes(call) or [0]:
                out[key + (size,) + values] += call["count"]
    return dict(out)


def events_in(tool, *more):
    out = Counter()
    for e in tool.events:
        equal(e["copies"], 0 if e["bytes"] == 0 and "Batch" in e["function"] else 1, "copies in a line")
        out[(e["pid"], e["tid"], e["comm"], e["layer"], e["stream"], e["captured"], e["function"], e["kind"], e["form"],
             e.get("source"), e["destination"], e.get("bytes"), *(e[field] for field in more))] += 1
    return dict(out)


def without_unknown_ends(counts):
    """Drops batches without elements, because their direction is unknown."""
    return {key: n for key, n in counts.items() if key[11] or "Batch" not in key[6]}


@case(each={"driver": "driver", "runtime": "runtime", "both": "both"}, asan=True)
def every_value(api):
    workload = Workload(script)
    tool = Tool("-p", workload.pid, "-e", "--api", api)
    workload.go()
    truth = workload.truth()
    equal(without_unknown_ends(events_in(tool.finish())), without_unknown_ends(events_of(truth, api)), f"{tool}")
    last = {}
    for event in tool.events:
        check(event["time_ns"] >= last.get(event["tid"], 0), f"out of order, after {last.get(event['tid'])}: {event}")
        last[event["tid"]] = event["time_ns"]


@case
def with_results_and_durations():
    names = {0: "ok", 719: "CUDA_ERROR_LAUNCH_FAILED"}
    workload = Workload(script + "copy 50 fn=cuMemcpyHtoD_v2 delay_us=200\n"
                        "copy 9 fn=cuMemcpyBatchAsync src=h dst=d sizes=5,6,7 result=719")
    both, failed = Tool("-p", workload.pid, "-e", "-l"), Tool("-p", workload.pid, "-e", "-x")
    workload.go()
    truth = workload.truth()
    for call in truth:
        call["result"] = names.get(call["result"], call["result"])
    equal(without_unknown_ends(events_in(both.finish(), "result")),
          without_unknown_ends(events_of(truth, "driver", "result")), f"{both}")
    slow = [event["latency_ns"] for event in both.events if event["latency_ns"] >= 200_000]
    check(len(slow) >= 50, f"{len(slow)} calls took 200 us, but 50 do so in the script")
    truth = [call for call in truth if call["result"] != "ok"]
    equal(events_in(failed.finish(), "result"), events_of(truth, "driver", "result"), f"{failed}")


@case
def addresses():
    """Addresses within one allocation differ by the offsets in the script, for any kind of argument structure."""
    offsets = (0, 1, 4095, 70001)
    functions = ("cuMemcpy", "cuMemcpyAsync", "cuMemcpyHtoD_v2", "cuMemcpy2D_v2", "cuMemcpy3D_v2", "cuMemcpy3DPeer",
                 "cuMemcpyBatchAsync", "cuMemcpy3DBatchAsync")
    tool, truth = trace(memory + "\n".join(f"copy 1 fn={f} src=h+{a} dst=d+{b}" for f in functions for a in offsets
                                           for b in offsets), "-e", form="workload-driver")
    for function in functions:
        seen = [event for event in tool.events if event["function"] == function]
        seen = seen[::2] if "Batch" in function else seen  # the first element of each batch
        pairs = [(int(str(e["source_address"]), 0), int(str(e["destination_address"]), 0)) for e in seen]
        base = pairs[0]
        equal([(a - base[0], b - base[1]) for a, b in pairs], [(a, b) for a in offsets for b in offsets], function)


@case
def unreadable_lines():
    """Lines lack values that cannot be read; the unreadable rest of a batch has a single line."""
    tool, _ = trace("copy 3 fn=cuMemcpy2D_v2 params=unreadable; copy 2 fn=cuMemcpyBatchAsync sizes=1,2,3 params=unreadable",
                    "-e", form="workload-driver", losses=True)
    got = Counter((e["function"], e["kind"], e.get("bytes"), e["copies"]) for e in tool.events)
    equal(dict(got), {("cuMemcpy2D_v2", "unknown", None, 1): 3, ("cuMemcpyBatchAsync", "unknown", None, 3): 2}, f"{tool}")
    equal(tool.lost, {"arguments_unreadable": 5}, "losses")


@case
def fifty_thousand():
    """Four threads copy at full speed, with a buffer that holds all events."""
    tool, truth = trace("threads 4; copy 12500 bytes=1009; end", "-e", "--ring-mb", 32)
    equal(events_in(tool), events_of(truth, "driver"), f"{tool}")


@case
def a_line_of_text_each():
    tool, _ = trace(memory + "copy 101 src=h dst=d bytes=65536; copy 7 fn=cudaMemsetAsync; copy 3 fn=cuMemcpyBatchAsync src=h "
                    "dst=d sizes=1,2", "-e", json=False)
    head, *lines = tool.text.splitlines()
    equal(len(lines), 101 + 7 + 6, "lines")
    equal(head.split()[:4], ["TIME(s)", "PID", "TID", "COMM"], "header")
    equal(head.split()[-6:], ["KIND", "FORM", "SIZE", "FROM", "TO", "FUNCTION"], "header")
    equal(sum("cuMemcpyHtoD_v2" in line and " H2D " in line for line in lines), 101, "lines of cudaMemcpy")
