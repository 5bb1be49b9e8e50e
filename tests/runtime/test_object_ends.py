# SPDX-License-Identifier: Apache-2.0
"""Handles of streams, events, contexts and graphs are reused: nothing outlives its object, or its process."""
import harness
import leftovers
import system
from harness import case, equal, wait_until
from programs import Tool, Workload, trace
from truth import Rows, same_counts

# What is captured, and what is launched.
scripts = {
    "destroyed": ("capture begin; launch vecadd 3 stream=1; stream destroy; launch vecadd 1000 stream=1", 3, 1000),
    "destroyed_again": ("repeat 20; capture begin; launch vecadd 3 stream=1; stream destroy; launch vecadd 7 stream=1; end", 60, 140),
    "not_destroyed": ("capture begin; launch vecadd 3 stream=1; stream destroy result=1; launch vecadd 5 stream=1\n"
                      "capture end; launch vecadd 7 stream=1", 8, 7),
    "reset": ("capture begin; launch vecadd 3 stream=1; reset; launch vecadd 1000 stream=1", 3, 1000),
    "context": ("newcontext; capture begin; launch vecadd 3 stream=1; destroycontext; newcontext; launch vecadd 1000 stream=1", 3, 1000),
    "other_context": ("capture begin; launch vecadd 3 stream=1; newcontext; destroycontext; launch vecadd 5 stream=1\n"
                      "capture end; launch vecadd 7 stream=1", 8, 7),
}
of_events = {
    "joined": ("capture begin; event record E stream=1; event wait E stream=2; launch saxpy 2 stream=2; stream destroy stream=2\n"
               "launch saxpy 700 stream=2; capture end G", 2, 700),
    "event": ("capture begin; event record E stream=1; event destroy E; event wait F stream=2; launch saxpy 700 stream=2\n"
              "launch vecadd 3 stream=1; capture end G", 3, 700),
}
tools = {"cudalaunch": ["--by", "pid"], "cudatop": ["--by", "pid"]}


def captured_and_launched(tool, chosen):
    script, captured, launched = chosen
    traced, truth = trace(script, *tools[tool], form="workload-driver", losses=tool == "cudatop")
    kernels = [call for call in truth if call["kind"] == "kernel"]
    count = lambda recorded: sum(call["count"] for call in kernels if call["recorded"] == recorded)
    equal((count(True), count(False)), (captured, launched), "the truth")
    rows = [row for row in traced.rows if row.get("pid") in {call["pid"] for call in truth}]  # cudatop has others, too
    equal([sum(row.get(key) or 0 for row in rows) for key in ("captured", "launches")], [captured, launched], f"{rows}")


@case(each=scripts | of_events)
def a_reused_handle_captures_nothing(chosen):
    captured_and_launched("cudalaunch", chosen)


@case(each=scripts | of_events, tool="cudatop")
def nor_does_it_in_cudatop(chosen):
    captured_and_launched("cudatop", chosen)


@case(each={"runtime": "workload", "13": "workload13"})
def through_the_runtime(form):
    tool, truth = trace("repeat 20; capture begin; launch vecadd 3 stream=1; stream destroy; launch vecadd 50 stream=1; end", form=form)
    same_counts(tool, truth)
    equal(Rows(truth).count(tool.rows, ()), {("captured",): 60, ("launches",): 1000}, "sums")


@case
def a_destroyed_context_has_no_device():
    """The thread is back in the context before it."""
    tool, truth = trace("device 0; launch vecadd 3; newcontext 1; destroycontext; launch vecadd 70", "--by", "device", form="workload-driver")
    equal({call["device"] for call in truth}, {0}, "the truth")
    equal({row["device"]: row["launches"] for row in tool.rows}, {0: 73}, "launches by device")


# Kernels that are launched neither make these known, nor let them be forgotten.
only_these = {"captures": "capture begin stream={n}", "graphs": "graph create G{n}",
              "execs": "graph create G{n}; graph instantiate G{n} X{n}"}
ends = {"exit": "", "exec": "; exec; touch {dir}/on; wait {dir}/end; end", "kill": "; wait {dir}/never"}


@case(each={f"{table}_{end}": (table, end) for table in only_these for end in ends})
def nothing_is_left_of_a_process(chosen):
    table, end = chosen
    steps = "; ".join(only_these[table].replace("{n}", str(n + 1)) for n in range(3))
    workload = Workload(f"touch {{up}}; wait {{go}}; {steps}; touch {{dir}}/made; wait {{dir}}/over{ends[end]}", "workload-driver",
                        warm=False, start=False)
    workload.ready()
    bystander = Workload("wait {dir}/finish")
    tool = Tool("-p", f"{bystander.pid},{workload.pid}")
    bystander.go()
    workload.go()
    wait_until((harness.here / "made").exists, "all are made")
    equal(workload.pid in leftovers.pids_in_map(tool, table), True, f"it has {table}")
    (harness.here / "over").touch()
    if end == "kill":
        workload.process.kill()
        workload.process.wait()
    elif end == "exec":
        wait_until((harness.here / "on").exists, "it is another program")
    wait_until(lambda: workload.pid not in leftovers.pids_in_map(tool, table), f"nothing is left in {table}", 20)
    for name in ("end", "finish"):
        (harness.here / name).touch()
    bystander.wait()
    if end != "kill":
        workload.wait()
    tool.finish()


# --- what several threads change at once ---------------------------------------------------------------------------------


@case(tool="gpualloc", alone=True)
def a_primary_context_has_as_many_holders_as_it_was_retained():
    """Whatever threads do at once: it ends with its last holder, and what is allocated in it is live until then. Holders are
    known of processes that are younger than the tool, as a child is. The stand-in's threads retain it once more each."""
    workload = Workload("fork; device 0; alloc a 12345678; threads 2; repeat 50000; primary retain; primary release; end; end\n"
                        "primary release; primary release; touch {dir}/two; wait {dir}/last; primary release; touch {dir}/three\n"
                        "wait {dir}/end; end", "workload-driver")
    tool = Tool("-i", "0.3", "--by", "pid")
    workload.go()
    wait_until((harness.here / "two").exists, "all but one have released it", 60)
    child, = system.descendants(workload.pid)
    rows = lambda: [row for row in tool.rows if row["pid"] == child]
    reports = len(rows())
    wait_until(lambda: len(rows()) > reports + 1, "reports of what is live after that", 20)
    equal(rows()[-1]["live_bytes"], 12345678, "what is live")
    (harness.here / "last").touch()
    wait_until(lambda: sum(row["released_bytes"] for row in rows()) == 12345678, "a report that it went with the context", 20)
    (harness.here / "end").touch()
    workload.wait()
    tool.stop()
