# SPDX-License-Identifier: Apache-2.0
"""Reused handles of streams, events, contexts and graphs: tracked state must not outlive its object or its process."""
import harness
import leftovers
import system
from harness import case, equal, wait_until
from programs import Tool, Workload, trace
from truth import Rows, same_counts


@case(each={"runtime": "workload", "13": "workload13"}, long=["runtime"])
def a_reused_stream_captures_nothing(form):
    """The runtime destroys streams through the driver."""
    tool, truth = trace("repeat 20; capture begin; launch vecadd 3 stream=1; stream destroy; launch vecadd 50 stream=1; end", form=form)
    same_counts(tool, truth)
    equal(Rows(truth).count(tool.rows, ()), {("captured",): 60, ("launches",): 1000}, "sums")


@case(tool="cudatop")
def a_stream_that_joined_a_capture():
    tool, truth = trace("capture begin; event record E stream=1; event wait E stream=2; launch saxpy 2 stream=2; stream destroy stream=2\n"
                        "launch saxpy 700 stream=2; capture end G", "--by", "pid", form="workload-driver", losses=True)
    rows = [row for row in tool.rows if row.get("pid") in {call["pid"] for call in truth}]  # cudatop has further rows
    equal([sum(row.get(key) or 0 for row in rows) for key in ("captured", "launches")], [2, 700], f"{rows}")


# Scripts without launches, so that only these calls put the process into the tool's tables.
table_scripts = {"captures": "capture begin stream={n}", "graphs": "graph create G{n}",
              "execs": "graph create G{n}; graph instantiate G{n} X{n}"}
ends = {"exit": "", "exec": "; exec; touch {dir}/on; wait {dir}/end; end", "kill": "; wait {dir}/never"}


@case(each={f"{table}_{end}": (table, end) for table, end in zip(table_scripts, ends)})
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
