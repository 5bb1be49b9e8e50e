# SPDX-License-Identifier: Apache-2.0
"""cudagraph: each executable graph has its own row with its nodes and calls."""
import graphs
from graphs import case, same_graphs, trace_graphs
from harness import check, equal
from programs import Tool, Workload

specific = ("kernel", "memcpy", "memset", "host", "empty", "wait", "record", "semsignal", "semwait", "memalloc")
settable = ("kernel", "memcpy", "memset", "host", "wait", "record", "semsignal", "semwait")


def every(layer, adds, instantiates, updates, memop, generic="generic"):
    """A script with every graph function, each with a unique number of calls."""
    n = iter(range(2, 1000))
    lines = ["graph create G"]
    lines += [f"graph add G {kind} {next(n)}; graph add G {kind} {next(n)} {generic}" for kind in specific]
    lines += ["graph add G memfree 2", *(f"graph add G {add}" for add in adds)]
    lines += ["graph add G memop 4"] if memop else []
    lines += [f"graph create H; graph add H child 2 of=G; graph add H child 1 of=G {generic}; graph add H kernel 5; graph clone H C"]
    lines += ["graph create B; graph add B kernel 3"]
    lines += ["graph handle C; graph add C conditional body=D; graph add D kernel 7"] if generic else []
    lines += [f"graph instantiate {'GHCB'[i % 4]} X{i} fn={fn}; graph launch X{i} {next(n)}; graph upload X{i} {next(n)}"
              for i, fn in enumerate(instantiates)]
    lines += [f"graph instantiate G Y; graph setparams Y {kind} {next(n)}; graph setparams Y {kind} {next(n)} generic\n"
              f"graph launch Y {next(n)}" for kind in settable]
    lines += ["graph instantiate H Z; graph setparams Z child of=G; graph launch Z 3 fn=%sGraphLaunch_ptsz" % layer]
    lines += ["graph setparams Y memop 3"] if memop else []
    lines += [f"graph instantiate B U; graph update U B {next(n)} fn={fn}; graph launch U {next(n)}" for fn in updates]
    lines += ["graph update U G; graph update U B update_result=5"] if updates else []
    lines += [f"graph upload X1 3 fn={layer}GraphUpload_ptsz; graph destroy B; graph execdestroy X0; graph destroy H", graphs.no_graphs]
    return "\n".join(lines)


driver = every("cu", ["kernel 3 fn=cuGraphAddKernelNode", "empty 2 generic fn=cuGraphAddNode_v2"],
               ["cuGraphInstantiate", "cuGraphInstantiate_v2", "cuGraphInstantiateWithFlags", "cuGraphInstantiateWithParams",
                "cuGraphInstantiateWithParams_ptsz"], ["cuGraphExecUpdate", "cuGraphExecUpdate_v2"], True)
runtime = ("cuda", [f"memcpy 3 fn=cudaGraphAddMemcpyNode{what}" for what in ("1D", "ToSymbol", "FromSymbol")],
           ["cudaGraphInstantiate", "cudaGraphInstantiateWithFlags", "cudaGraphInstantiateWithParams",
            "cudaGraphInstantiateWithParams_ptsz"])
# The version of a static runtime is unknown, so functions whose arguments differ between versions are not probed.
scripts = {"workload": every(*runtime, ["cudaGraphExecUpdate"], False), "workload-static": every(*runtime, [], False, "")}


@case(asan=True)
def every_driver_function():
    tool, workload = trace_graphs(driver)
    called = {call["function"] for call in graphs.calls(workload)}
    check(len(called) >= 39, f"{len(called)} functions called: {sorted(called)}")


@case(gpu=True)
def nodes_on_a_device():
    """Graphs with added and captured nodes (over two streams), clones and children are instantiated, launched, updated
    and launched again. Results are compared with numbers from the script, since real drivers report none."""
    workload = Workload("""
    graph create G; graph add G kernel 3; graph add G memset 2; graph add G memcpy 1; graph add G host 2; graph add G empty 1
    capture begin stream=1; launch vecadd 5 stream=1; event record E stream=1; event wait E stream=2; launch saxpy 4 stream=2
    event record F stream=2; event wait F stream=1; capture end C stream=1; graph clone G D; graph add D kernel 4; graph add D child of=C
    graph instantiate G X; graph launch X 10; graph instantiate C Y; graph upload Y 2; graph launch Y 20 stream=1; sync 1
    graph instantiate D Z; graph launch Z 7; graph create H; graph add H kernel 3; graph add H memset 2; graph add H memcpy 1
    graph add H host 2; graph add H empty 1; graph update X H; graph launch X 3; sync 1; graph execdestroy X
    """, "workload-driver")
    tool = Tool("-p", workload.pid)
    workload.go().wait()
    shown = [dict(graph["last"], **graph["sums"]) for _, graph in sorted(graphs.graph_rows(tool.finish()).items())]
    keys = "kernels", "copies", "memsets", "host_functions", "other_nodes", "launches", "kernels_launched", "updates", "uploads", "errors"
    equal([tuple(row[key] for key in keys) for row in shown],
          [(3, 1, 2, 2, 1, 13, 39, 1, 0, 0), (9, 0, 0, 0, 0, 20, 180, 0, 2, 0), (16, 1, 2, 2, 1, 7, 112, 0, 0, 0)], "graphs")


@case(each={form: form for form in ("workload", "workload13", "workload-static")})
def every_runtime_function(form):
    """With --api driver, runtime and both. With both, no call counts twice."""
    workload = Workload(scripts.get(form, scripts["workload"]), form)
    tools = {api: Tool("-p", workload.pid, "--api", api) for api in ("driver", "runtime", "both")}
    workload.go().wait()
    for api, tool in tools.items():
        same_graphs(tool.finish(), workload, api=api)


@case(each={"driver": ("workload-driver", "driver"), "runtime": ("workload", "runtime"), "both": ("workload13", "both")})
def captured_nodes(how):
    """Calls on a captured stream become nodes, by kind; failed calls, and calls on other streams, do not."""
    form, api = how
    script = """
    launch scale 9 stream=1; capture begin stream=1; launch scale 3 stream=1; launch scale 2 stream=1 result=719; launch scale 7 stream=2
    hostfunc 2 stream=1; copy 4 fn=cuMemcpyHtoDAsync_v2 stream=1; copy 5 fn=cuMemsetD8Async stream=1; copy 1 fn=cuMemcpyDtoD_v2
    copy 2 fn=cuMemPrefetchAsync stream=1; alloc m 4096 fn=cuMemAllocAsync stream=1; free m stream=1; launch scale 11
    capture end G stream=1; launch scale 6 stream=1; graph instantiate G X; graph launch X 13 stream=1
    capture begin stream=1; launch scale 1 stream=1; graph launch X 2 stream=1; graph launch X stream=2; capture end H stream=1
    graph instantiate H Y; graph launch Y 5
    """
    trace_graphs(script, form=form, api=api)


@case(asan=True)
def concurrent_captures():
    """Captures of one thread on two streams, and of several threads; handles are reused by other threads."""
    script = """
    capture begin stream=1; capture begin stream=2; launch scale 3 stream=1; launch vecadd 5 stream=2; capture end G stream=1
    launch scale 7 stream=2; launch scale 9 stream=1; capture end H stream=2; graph instantiate G X; graph instantiate H Y
    graph launch X 2; graph launch Y 3
    threads 4; repeat 50; capture begin stream=own; launch scale 2 stream=own; copy 1 fn=cuMemcpyHtoDAsync_v2 stream=own
    capture end .G stream=own; graph instantiate .G .X; graph launch .X 3 stream=own; graph execdestroy .X; graph destroy .G; end; end
    threads 4; repeat 50; capture begin stream=own; launch scale 2 stream=own; launch scale 9 stream=per-thread
    launch scale 3 fn=cuLaunchKernel_ptsz; capture end .G stream=own fn=cuStreamEndCapture_ptsz; graph instantiate .G .X
    graph launch .X 2 fn=cuGraphLaunch_ptsz; graph execdestroy .X; graph destroy .G; launch scale 1 stream=per-thread; end; end
    """
    trace_graphs(script)


@case
def events_carry_a_capture():
    """Events extend a capture over three streams and back; calls on these streams before and after the capture do not
    belong to the graph."""
    script = """
    repeat 20; capture begin stream=1; launch scale 2 stream=1; event record E stream=1; event wait E stream=2; event wait E stream=3
    launch scale 3 stream=2; copy 4 fn=cuMemsetD8Async stream=3; hostfunc 1 stream=3
    event record F stream=2; event wait F stream=1; event record H stream=3; event wait H stream=1
    launch scale 1 stream=1; capture end G stream=1; launch scale 5 stream=2; launch scale 5 stream=3; graph instantiate G X
    graph launch X 2; launch scale 3 stream=2; end
    capture begin stream=2; launch scale 7 stream=2; launch scale 3 stream=1; launch scale 3 stream=3; capture end G stream=2
    graph instantiate G Y; graph launch Y 3
    """
    trace_graphs(script)


@case
def captured_into_a_graph():
    """A capture into an existing graph adds nodes to it, but not to executable graphs instantiated before."""
    script = """
    graph create G; graph add G kernel 2; graph instantiate G X; capture begin stream=1 to=G; launch scale 3 stream=1; hostfunc 1 stream=1
    capture end G2 stream=1; graph instantiate G Y; graph launch X 5; graph launch Y 7; capture begin stream=1 to=G
    launch scale 100 stream=1; capture end G3 stream=1; graph instantiate G Z; graph launch Z; graph add G memset 2
    graph update Z G; graph launch Z 2
    """
    trace_graphs(script)
    trace_graphs(script, form="workload", api="runtime")


failures = {
    900: "capture begin stream=1; launch scale 3 stream=1; sync 1 fn=cuStreamSynchronize stream=1; launch scale 4 stream=1; capture end G stream=1",
    902: "event record E stream=1; event wait E stream=2; capture end G stream=1; capture end H stream=2",
    903: "event record E stream=1; event wait E stream=2; launch scale 3 stream=2; capture end G stream=2; capture end G stream=1",
    904: "event record E stream=1; event wait E stream=2; launch scale 3 stream=2; capture end G stream=1",
    905: "event wait O stream=1; launch scale 2 stream=1; capture end G stream=1",
    906: "event record E stream=1; event wait E stream=legacy; launch scale 2 stream=1; capture end G stream=1",
    907: "event record E stream=1; sync 1 fn=cuEventQuery event=E; launch scale 2 stream=1; capture end G stream=1",
    908: "threads 1; capture end G stream=1; end; launch scale 2 stream=1; capture end G stream=1; graph instantiate G Z; graph launch Z 5",
}


@case(each={str(code): code for code in failures})
def failed_captures(code):
    """A failed capture leaves no graph, and adds nothing to the next one."""
    begin = "" if code == 900 else "capture begin stream=1; launch scale 3 stream=1;"
    other = "capture begin stream=2; launch scale 1 stream=2;" if code == 902 else ""
    script = f"""event record O stream=2; {other} {begin} {failures[code]}
    capture begin stream=1; launch scale 5 stream=1; launch scale 7 stream=2; capture end K stream=1; graph instantiate K X
    graph launch X 3; capture begin stream=2; launch scale 2 stream=2; capture end L stream=2; graph instantiate L Y; graph launch Y 4
    """
    workload = Workload(script, "workload-driver")
    tool, summary = Tool("-p", workload.pid), Tool("-p", workload.pid, "--summary")
    workload.go().wait()
    same_graphs(tool.finish(), workload)
    ends = [call for call in graphs.calls(workload) if call["kind"] == "end"]
    row, = summary.finish().rows
    equal((row["captures"], row["failed_captures"]), tuple(sum(c["count"] for c in ends if bool(c["result"]) == bad)
                                                           for bad in (False, True)), "captures")
    check(row["failed_captures"] > 0, f"no failed capture: {ends}")
