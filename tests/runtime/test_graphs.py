# SPDX-License-Identifier: Apache-2.0
"""cudagraph: each graph that can be launched has a row of its own, and it is what was done with that graph."""
import graphs
import harness
import system
from graphs import case, same_graphs, trace_graphs
from harness import check, equal, wait_until
from programs import Tool, Workload

specific = ("kernel", "memcpy", "memset", "host", "empty", "wait", "record", "semsignal", "semwait", "memalloc")
settable = ("kernel", "memcpy", "memset", "host", "wait", "record", "semsignal", "semwait")


def every(layer, adds, instantiates, updates, memop):
    """A script with every function about graphs, each a number of times of its own."""
    n = iter(range(2, 1000))
    lines = ["graph create G"]
    lines += [f"graph add G {kind} {next(n)}; graph add G {kind} {next(n)} generic" for kind in specific]
    lines += ["graph add G memfree 2", *(f"graph add G {add} {next(n)}" for add in adds)]
    lines += ["graph add G memop 4"] if memop else []
    lines += ["graph create H; graph add H child 2 of=G; graph add H child of=G generic; graph add H kernel 5; graph clone H C"]
    lines += ["graph create B; graph add B kernel 3; graph handle C; graph add C conditional body=D; graph add D kernel 7"]
    lines += [f"graph instantiate {'GHCB'[i % 4]} X{i} fn={fn}; graph launch X{i} {next(n)}; graph upload X{i} {next(n)}"
              for i, fn in enumerate(instantiates)]
    lines += [f"graph instantiate G Y; graph setparams Y {kind} {next(n)}; graph setparams Y {kind} {next(n)} generic\n"
              f"graph launch Y {next(n)}" for kind in settable]
    lines += ["graph instantiate H Z; graph setparams Z child of=G; graph launch Z 3 fn=%sGraphLaunch_ptsz" % layer]
    lines += ["graph setparams Y memop 3"] if memop else []
    lines += [f"graph instantiate B U; graph update U B {next(n)} fn={fn}; graph launch U {next(n)}" for fn in updates]
    lines += [f"graph upload U 3 fn={layer}GraphUpload_ptsz; graph update U G; graph update U B update_result=5"]
    lines += ["graph destroy B; graph execdestroy U; graph execdestroy X0; graph destroy H", graphs.no_graphs]
    return "\n".join(lines)


driver = every("cu", ["kernel 3 fn=cuGraphAddKernelNode #", "empty 2 fn=cuGraphAddNode_v2 generic #"],
               ["cuGraphInstantiate", "cuGraphInstantiate_v2", "cuGraphInstantiateWithFlags", "cuGraphInstantiateWithParams",
                "cuGraphInstantiateWithParams_ptsz"], ["cuGraphExecUpdate", "cuGraphExecUpdate_v2"], True)
runtime = every("cuda", [f"memcpy fn=cudaGraphAddMemcpyNode{what} #" for what in ("1D", "ToSymbol", "FromSymbol")],
                ["cudaGraphInstantiate", "cudaGraphInstantiateWithFlags", "cudaGraphInstantiateWithParams",
                 "cudaGraphInstantiateWithParams_ptsz"], ["cudaGraphExecUpdate"], False)


@case(asan=True)
def every_driver_function():
    tool, workload = trace_graphs(driver)
    called = {call["function"] for call in graphs.calls(workload)}
    check(len(called) >= 39, f"{len(called)} functions called: {sorted(called)}")


@case(each={form: form for form in ("workload", "workload13", "workload-static")})
def every_runtime_function(form):
    """At the driver, at the runtime, and at both, where nothing counts twice."""
    workload = Workload(runtime, form)
    tools = {api: Tool("-p", workload.pid, "--api", api) for api in ("driver", "runtime", "both")}
    workload.go().wait()
    for api, tool in tools.items():
        same_graphs(tool.finish(), workload, api=api)


@case(each={"driver": ("workload-driver", "driver"), "runtime": ("workload", "runtime"), "both": ("workload13", "both")})
def captured_nodes(how):
    """What is called on a stream under capture is a node of it, by kind; what fails, or is elsewhere, is not."""
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
