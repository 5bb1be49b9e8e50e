# SPDX-License-Identifier: Apache-2.0
"""Reused handles of streams, events, contexts and graphs: tracked state must not outlive its object or its process."""
import harness
import leftovers
import system
from harness import case, equal, wait_until
from programs import Tool, Workload, trace
from truth import Rows, same_counts

# (script, captured kernels, launched kernels)
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
event_scripts = {
    "joined": ("capture begin; event record E stream=1; event wait E stream=2; launch saxpy 2 stream=2; stream destroy stream=2\n"
               "launch saxpy 700 stream=2; capture end G", 2, 700),
    "event": ("capture begin; event record E stream=1; event destroy E; event wait F stream=2; launch saxpy 700 stream=2\n"
              "launch vecadd 3 stream=1; capture end G", 3, 700),
}
tools = {"cudalaunch": ["--by", "pid"], "cudatop": ["--by", "pid"]}


def check_counts(tool, chosen):
    script, captured, launched = chosen
    traced, truth = trace(script, *tools[tool], form="workload-driver", losses=tool == "cudatop")
    kernels = [call for call in truth if call["kind"] == "kernel"]
    count = lambda recorded: sum(call["count"] for call in kernels if call["recorded"] == recorded)
    equal((count(True), count(False)), (captured, launched), "the truth")
    rows = [row for row in traced.rows if row.get("pid") in {call["pid"] for call in truth}]  # cudatop has further rows
    equal([sum(row.get(key) or 0 for row in rows) for key in ("captured", "launches")], [captured, launched], f"{rows}")


@case(each=scripts | event_scripts)
def a_reused_handle_captures_nothing(chosen):
    check_counts("cudalaunch", chosen)


@case(each=scripts | event_scripts, tool="cudatop")
def a_reused_handle_captures_nothing_in_cudatop(chosen):
    check_counts("cudatop", chosen)


@case(each={"runtime": "workload", "13": "workload13"})
def through_the_runtime(form):
    tool, truth = trace("repeat 20; capture begin; launch vecadd 3 stream=1; stream destroy; launch vecadd 50 stream=1; end", form=form)
    same_counts(tool, truth)
    equal(Rows(truth).count(tool.rows, ()), {("captured",): 60, ("launches",): 1000}, "sums")


@case
def a_destroyed_context_has_no_device():
    """The thread returns to the context that was current before."""
    tool, truth = trace("device 0; launch vecadd 3; newcontext 1; destroycontext; launch vecadd 70", "--by", "device", form="workload-driver")
    equal({call["device"] for call in truth}, {0}, "the truth")
    equal({row["device"]: row["launches"] for row in tool.rows}, {0: 73}, "launches by device")


# Scripts without launches, so that only these calls put the process into the tool's tables.
table_scripts = {"captures": "capture begin stream={n}", "graphs": "graph create G{n}",
              "execs": "graph create G{n}; graph instantiate G{n} X{n}"}
ends = {"exit": "", "exec": "; exec; touch {dir}/on; wait {dir}/end; end", "kill": "; wait {dir}/never"}


@case(each={f"{table}_{end}": (table, end) for table in table_scripts for end in ends})
def tables_forget_exited_processes(chosen):
    table, end = chosen
    steps = "; ".join(table_scripts[table].replace("{n}", str(n + 1)) for n in range(3))
    workload = Workload(f"touch {{up}}; wait {{go}}; {steps}; touch {{dir}}/made; wait {{dir}}/over{ends[end]}", "workload-driver",
                        warm=False, start=False)
    workload.ready()
    bystander = Workload("wait {dir}/finish")
    tool = Tool("-p", f"{bystander.pid},{workload.pid}")
    bystander.go()
    workload.go()
    wait_until((harness.here / "made").exists, "the objects exist")
    equal(workload.pid in leftovers.pids_in_map(tool, table), True, f"{table} has the process")
    (harness.here / "over").touch()
    if end == "kill":
        workload.process.kill()
        workload.process.wait()
    elif end == "exec":
        wait_until((harness.here / "on").exists, "the process executes another program")
    wait_until(lambda: workload.pid not in leftovers.pids_in_map(tool, table), f"{table} has forgotten the process", 20)
    for name in ("end", "finish"):
        (harness.here / name).touch()
    bystander.wait()
    if end != "kill":
        workload.wait()
    tool.finish()


# --- concurrent changes by several threads ---------------------------------------------------------------------------


@case(tool="gpualloc", alone=True)
def primary_context_ends_with_its_last_release():
    """Several threads retain and release the primary context concurrently. Its allocations are live until the last
    release. The tool can count references only in processes that start after the tool, such as this child. In the
    stand-in, each thread holds a reference."""
    workload = Workload("fork; device 0; alloc a 12345678; threads 2; repeat 50000; primary retain; primary release; end; end\n"
                        "primary release; primary release; touch {dir}/two; wait {dir}/last; primary release; touch {dir}/three\n"
                        "wait {dir}/end; end", "workload-driver")
    tool = Tool("-i", "0.3", "--by", "pid")
    workload.go()
    wait_until((harness.here / "two").exists, "one holder is left", 60)
    child, = system.descendants(workload.pid)
    rows = lambda: [row for row in tool.rows if row["pid"] == child]
    reports = len(rows())
    wait_until(lambda: len(rows()) > reports + 1, "two more reports of live memory", 20)
    equal(rows()[-1]["live_bytes"], 12345678, "live memory")
    (harness.here / "last").touch()
    wait_until(lambda: sum(row["released_bytes"] for row in rows()) == 12345678, "a report that the memory was released with the context", 20)
    (harness.here / "end").touch()
    workload.wait()
    tool.stop()
