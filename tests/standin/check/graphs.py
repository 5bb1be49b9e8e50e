# SPDX-License-Identifier: Apache-2.0
"""Graphs and captures in the driver, scripts and truth files. scripts.Truth checks every truth file against the
driver's own counters, in total and per executable graph."""
import ctypes as c

from driver import P, U, call, counts, cuda, function, out, out_last, ready, LAUNCH_CLASS, RECORDED
from forwarding import Described, runtimes
from harness import check, equal
from scripts import DRIVERS, RUNTIMES, run

NODES = {"kernel": "kernels", "memcpy": "copies", "memset": "memsets", "host": "host", "empty": "others",
         "wait": "others", "record": "others", "semsignal": "others", "semwait": "others", "memop": "others",
         "memalloc": "others", "conditional": "others"}
SUMS = ("kernels", "copies", "memsets", "host", "others")


def sums(row):
    return {field: row[field] for field in SUMS if row[field]}


def stream():
    return out("cuStreamCreate", 0)


def event():
    return out("cuEventCreate", 0)


def begin(s, mode=0):
    call("cuStreamBeginCapture_v2", P(s), mode)


def end(s, want=0):
    graph = P(1)
    call("cuStreamEndCapture", P(s), c.byref(graph), want=want)
    return graph.value


def fork(e, a, b, want=0):
    call("cuEventRecord", P(e), P(a))
    call("cuStreamWaitEvent", P(b), P(e), 0, want=want)


def launch(s, want=0):
    call("cuLaunchKernel", P(function()[1]), *[U(1)] * 6, U(0), P(s), None, None, want=want)


def nodes(graph):
    n = c.c_size_t()
    call("cuGraphGetNodes", P(graph), None, c.byref(n))
    return n.value


@check
def events_add_streams_to_a_capture():
    ready()
    a, b, x = stream(), stream(), stream()
    e, f = event(), event()
    begin(a)
    fork(e, a, b)
    begin(x)  # a second, independent capture
    launch(b)
    launch(x)
    fork(f, b, a)
    launch(a)
    equal((nodes(end(a)), nodes(end(x))), (2, 1))
    launch(b)  # not captured
    equal(out_last("cuStreamIsCapturing", P(b), kind=c.c_int), 0)


@check
def invalid_captures_fail_at_their_end():
    ready()
    a, b = stream(), stream()
    e, outside = event(), event()
    call("cuEventRecord", P(outside), P(b))

    def fails(code, *steps, at_end=901):
        begin(a)
        for step in steps:
            step()
        equal(end(a, want=at_end), None, f"{code}")
        launch(a)

    fails(900, lambda: call("cuStreamSynchronize", P(a), want=900), lambda: launch(a, want=901))
    fails(904, lambda: fork(e, a, b), lambda: launch(b), at_end=904)
    fails(905, lambda: call("cuStreamWaitEvent", P(a), P(outside), 0, want=905))
    fails(906, lambda: call("cuEventRecord", P(e), P(a)), lambda: call("cuStreamWaitEvent", None, P(e), 0, want=906))
    fails(907, lambda: call("cuEventRecord", P(e), P(a)), lambda: call("cuEventQuery", P(e), want=907))
    fails(903, lambda: fork(e, a, b), lambda: end(b, want=903))
    begin(b)
    fails(902, lambda: fork(e, a, b, want=902))
    end(b, want=901)
    end(a, want=401)
    call("cuStreamBeginCapture_v2", None, 0, want=900)


@check
def only_relaxed_captures_end_in_another_thread():
    for mode, want in (("global", 908), ("thread", 908), ("relaxed", 0)):
        truth = run("workload-driver", f"capture begin mode={mode}; threads 1; capture end G; end; capture end G")
        equal(sorted(r["result"] for r in truth.graph_calls if r["kind"] == "end"), sorted((want, 0 if want else 401)), mode)


@check
def destroyed_handles_are_reused():
    ready()
    graph = out("cuGraphCreate", 0)
    executable = out("cuGraphInstantiateWithFlags", P(graph), c.c_uint64(0))
    call("cuGraphExecDestroy", P(executable))
    call("cuGraphLaunch", P(executable), None, want=1)
    equal(out("cuGraphInstantiateWithFlags", P(graph), c.c_uint64(0)), executable)
    call("cuGraphDestroy", P(graph))
    equal(out("cuGraphCreate", 0), graph)
    truth = run("workload", "repeat 5; build vecadd 3; graph 2; end; graph create A; graph destroy A; graph create B\n"
                            "graph instantiate B X; graph execdestroy X; graph instantiate B X; graph launch X 7")
    a, b = truth.graphs[-2:]
    equal((a["handle"], a["generation"], a["destroyed"]), (b["handle"], b["generation"] - 1, True))
    x, y = truth.execs[-2:]
    equal((x["handle"], x["launches"], y["handle"], y["launches"]), (y["handle"], 0, x["handle"], 7))


@check
def node_kinds_are_counted():
    for form in RUNTIMES + DRIVERS:
        steps = "\n".join(f"graph add G {kind} {n}; graph add G {kind} {n} generic" if kind not in
                          ("conditional", "memop") else f"graph add G {kind} {n}"
                          for n, kind in enumerate(NODES, 1))
        truth = run(form, f"graph create G; {steps}; graph add G memfree 3; graph create H; graph add H child 2 of=G\n"
                          "graph add H kernel 5; graph clone H C; graph instantiate C X")
        g, h, clone = (r for r in truth.graphs if not r["body"])
        want = dict.fromkeys(SUMS, 0) | {"others": 3}
        for n, (kind, field) in enumerate(NODES.items(), 1):
            want[field] += n if kind in ("conditional", "memop") else 2 * n
        equal(sums(g), want, form)
        doubled = {k: 2 * n for k, n in want.items()} | {"kernels": 2 * want["kernels"] + 5}
        for row in (h, clone, truth.execs[0]):
            equal((sums(row), row["nodes"], row["children"]), (doubled, sum(doubled.values()), 2), form)
        equal((clone["of"], truth.execs[0]["graph"]), (h["handle"], clone["handle"]))
        if form in RUNTIMES:
            made = sum(r["count"] for r in truth.graph_calls if r["layer"] == "runtime")
            equal(made, sum(r["count"] for r in truth.graph_calls if r["nested"]), form)


@check
def captured_calls_become_nodes():
    for form in ("workload", "workload13", "workload-driver"):
        cu = "cu" if form == "workload-driver" else "cuda"
        truth = run(form, "capture begin; launch vecadd 3 stream=1; event record E stream=1; event wait E stream=2\n"
                          "copy 2 fn=cuMemcpyAsync stream=2; copy 1 fn=cuMemsetD8Async stream=2; hostfunc 4 stream=2\n"
                          f"alloc a 4096 fn={cu}MallocAsync stream=2; free a stream=2\n".replace("cuMalloc", "cuMemAlloc")
                          + "event record F stream=2 external; sync 1 fn=cuStreamWaitValue32 stream=2\n"
                          "event record F stream=2; event wait F stream=1; capture end G; capture begin to=G\n"
                          "launch saxpy 5 stream=1; capture end G; graph instantiate G X; capture begin stream=3\n"
                          "graph launch X 2 stream=3; capture end C stream=3; graph launch X")
        g, captured = truth.graphs
        equal(sums(g), {"kernels": 8, "copies": 2, "memsets": 1, "host": 4, "others": 4}, form)
        equal((captured["kernels"], captured["children"], captured["captured"]), (16, 2, True), form)
        equal(truth.count(layer="driver", recorded=True, kind="kernel"), 8)
        equal(truth.count(layer="driver", recorded=True, kind="graph"), 2)
        total, = truth.graph_sums
        equal((total["captures"], total["instantiates"], total["execs_live"], total["graphs_live"]), (3, 1, 1, 2))
        assert total["capture_ns"] == g["capture_ns"] + captured["capture_ns"] > 0
        equal(total["instantiate_ns"], truth.execs[0]["instantiate_ns"])


@check
def failed_updates_report_a_reason():
    for form, functions in (("workload-driver", ("cuGraphExecUpdate", "cuGraphExecUpdate_v2")),
                            ("workload", ("cudaGraphExecUpdate",)), ("workload13", ("cudaGraphExecUpdate",))):
        for name in functions:
            truth = run(form, "graph create A; graph add A kernel 2; graph create B; graph add B kernel 3\n"
                              "graph create C; graph add C kernel; graph add C memset; graph instantiate A X\n" +
                        "".join(f"graph update X {what} fn={name}\n" for what in ("A", "B", "C", "A result=700",
                                                                                 "A update_result=8")))
            got = sorted((r["result"], r["update_result"]) for r in truth.graph_calls
                         if r["kind"] == "update" and r["layer"] == "driver")
            equal(got, [(0, 0), (700, 1), (910, 2), (910, 3), (910, 8)], name)
            x, = truth.execs
            equal((x["updates"], x["failed_updates"], x["update_result"], x["kernels"]), (1, 4, 8, 2))


@check
def executable_graphs_can_be_changed():
    kinds = ("kernel", "memcpy", "memset", "host", "child", "wait", "record", "semsignal", "semwait", "memop")
    for form in ("workload", "workload13", "workload-driver"):
        truth = run(form, "graph create H; graph add H kernel; graph create G\n" +
                    "".join(f"graph add G {kind} of=H; " for kind in kinds) + "graph instantiate G X\n" +
                    "".join(f"graph setparams X {kind} 3 of=H; " for kind in kinds) +
                    "graph setparams X kernel generic; graph enable X 0; graph launch X; graph enable X 1\n"
                    "graph upload X 2; graph launch X result=719; graph remove G host")
        x, = truth.execs
        equal((x["set_params"], x["uploads"], x["launches"], x["failed_launches"]), (31, 2, 1, 1), form)
        equal([r["kernels"] for r in truth.find(kind="graph", layer="driver", result=0)], [1])
        equal(truth.graphs[1]["host"], 0)


@check
def graphs_can_be_destroyed_during_their_launch():
    truth = run("workload", "graph create G; graph add G host 2; graph instantiate G X; background\n"
                            "graph launch X block_us=100000; end; sleep 30; graph execdestroy X; graph instantiate G Y\n"
                            "graph launch Y 3; join; graph launch null 2")
    first, second = truth.execs
    equal((first["handle"], first["launches"], second["launches"]), (second["handle"], 1, 3))
    equal(sum(r["count"] for r in truth.graph_calls if r["result"] == 1 and r["layer"] == "driver"), 2)


@check
def dotted_names_and_own_streams_are_per_thread():
    truth = run("workload", "threads 8; repeat 20; capture begin stream=own; launch vecadd 3 stream=own\n"
                            "capture end .G stream=own; graph instantiate .G .X; graph destroy .G; graph launch .X 2\n"
                            "graph execdestroy .X; end; end")
    equal({(x["kernels"], x["launches"], x["destroyed"]) for x in truth.execs}, {(3, 2, True)})
    equal((len(truth.execs), len(truth.graphs)), (160, 160))
    equal(len({(x["handle"], x["generation"]) for x in truth.execs}), 160)


@check
def brief_mode_shortens_the_truth():
    truth = run("workload", "graph brief; repeat 2000; build vecadd 3; graph 2; graph create G; graph destroy G; end")
    equal(len(truth.graph_calls), 10)
    equal((len(truth.graphs), len(truth.execs), truth.graph_sums[0]["instantiates"]), (2000, 2000, 2000))


@check
def children_report_their_own_graphs():
    truth = run("workload", "build vecadd 2; graph 1; fork; graph 5; build saxpy 3; graph 4; end; graph 2")
    equal(sorted((x["kernels"], x["launches"]) for x in truth.execs), [(2, 3), (3, 4)])
    equal(truth.count(kind="graph", layer="driver"), 12)


@check
def results_fail_every_graph_call():
    for form in ("workload", "workload-driver"):
        both = ("result=700", "runtime_result=35") if form == "workload" else ("result=700",)
        for option in both:
            truth = run(form, "graph create G; graph add G kernel 2; graph instantiate G X\n"
                              f"graph create A {option}; graph clone G B {option}; graph add G kernel {option}\n"
                              f"graph instantiate G Y {option}; graph upload X {option}; graph launch X {option}\n"
                              f"graph update X G {option}; graph setparams X {option}; graph enable X 0 {option}\n"
                              f"capture begin {option}; graph execdestroy X {option}; graph destroy G {option}")
            code = int(option.split("=")[1])
            failed = [r for r in truth.graph_calls if r["result"] == code]
            layers = {"driver"} if form == "workload-driver" else {"runtime"} if code == 35 else {"driver", "runtime"}
            equal({r["layer"] for r in failed}, layers, option)
            equal(len({r["kind"] for r in failed}), 12, option)
            equal((len(truth.graphs), len(truth.execs)), (1, 1))


@check
def instantiate_result_is_in_the_structure():
    ready()
    graph = out("cuGraphCreate", 0)
    params = (c.c_uint32 * 8)(0, 0, 0, 0, 0, 0, 9, 0)
    call("cuGraphInstantiateWithParams", c.byref(P()), P(graph), params)
    equal(params[6], 0)
    cuda.standin_next_result(2)
    call("cuGraphInstantiateWithParams", c.byref(P()), P(graph), params, want=2)
    equal(params[6], 1)


@check
def recorded_launches_count_twice():
    ready()
    s = stream()
    begin(s)
    before = counts()
    launch(s)
    after = counts()
    equal((after[LAUNCH_CLASS] - before[LAUNCH_CLASS], after[RECORDED] - before[RECORDED]), (1, 1))
    end(s)


@check
def node_parameters_are_translated():
    """Copies become the driver's structure. CUDA 13's cudaGraphAddNode takes edge data, CUDA 12's does not."""
    for major, runtime in runtimes():
        head = [P(0x1000), P(0x2000), P(0x3000), c.c_size_t(4)]
        with Described("cuGraphAddMemcpyNode", 6, at=4, size=200) as caught:
            runtime.cudaGraphAddMemcpyNode1D(*head, P(0x5000), P(0x6000), c.c_size_t(77), 1)
        equal((caught.args[:4], caught.u32(32, 120), caught.u64(40, 136, 176)),
              ((0x1000, 0x2000, 0x3000, 4), [1, 2], [0x6000, 0x5000, 77]))
        with Described("cuGraphAddMemsetNode", 6, at=4, size=40) as caught:
            runtime.cudaGraphAddMemsetNode(*head, (c.c_uint64 * 5)(0x7000, 1, 2, 3, 4))
        equal(caught.u64(0, 8, 16, 24, 32), [0x7000, 1, 2, 3, 4])
        generic = (c.c_uint32 * 64)(5)
        with Described("cuGraphAddNode" + ("_v2" if major == 13 else ""), 6, at=5 if major == 13 else 4, size=256) as caught:
            runtime.cudaGraphAddNode(*head[:3], *([P(0x9000)] if major == 13 else []), head[3], generic)
        equal(caught.u32(0), [5])
        equal(caught.args[:4], (0x1000, 0x2000, 0x3000, 0x9000 if major == 13 else 4))
        with Described("cuGraphExecUpdate_v2", 3, at=2, size=24) as caught:
            runtime.cudaGraphExecUpdate(P(0x1000), P(0x2000), (c.c_uint64 * 3)(1, 2, 3))
        equal((caught.args[:2], caught.u64(0, 8, 16)), ((0x1000, 0x2000), [1, 2, 3]))
