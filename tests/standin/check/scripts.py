# SPDX-License-Identifier: Apache-2.0
"""Each form of the workload runs its script, and its truth file matches the script and the driver's own counters."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from harness import build, check, environment, equal

RUNTIMES = ("workload", "workload13", "workload-nopie", "workload-static", "workload-static-stripped")
DRIVERS = ("workload-driver", "workload-dlopen")


class Truth:
    def __init__(self, path):
        rows = [json.loads(line) for line in open(path)]
        self.processes = [r for r in rows if r["type"] == "process"]
        self.calls = [r for r in rows if r["type"] == "call"]
        self.graph_calls, self.execs, self.graphs, self.graph_sums = (
            [r for r in rows if r["type"] == kind] for kind in ("graph-call", "exec", "graph", "graphs"))
        for field, *kinds in (("launch", "kernel"), ("graph", "graph"), ("host", "host"), ("alloc", "alloc"),
                              ("free", "free"), ("copy", "copy", "set", "prefetch"), ("sync", "sync", "poll")):
            reported = sum(self.count(layer="driver", kind=kind, implied=False) for kind in kinds)
            counted = sum((p["driver_counts"] or {field: 0})[field] for p in self.processes)
            equal(reported, counted, f"truth file against the driver's counter of {field}")
        self.check_graphs()
        self.memory, self.released = ({(r["pid"], r["holding"]): (r["bytes"], r["count"]) for r in rows
                                       if r["type"] == kind} for kind in ("memory", "released"))
        self.peaks = {r["pid"]: r["bytes"] for r in rows if r["type"] == "peak"}
        equal(self.held(), self.memory, "memory held according to the calls, against the driver's tallies")
        recorded = sum(r["count"] for r in self.find(layer="driver", kind="kernel", recorded=True))
        equal(recorded, sum((p["driver_counts"] or {"recorded": 0})["recorded"] for p in self.processes), "recorded")

    def check_graphs(self):
        """Checks graph calls against the driver's own counters: in total, and per executable graph."""
        lower = [r for r in self.graph_calls if r["layer"] == "driver"]
        reported = sum(r["count"] for r in lower if r["kind"] != "launch" and r["node"] not in ("memalloc", "memfree"))
        equal(reported, sum((p["driver_counts"] or {"graph_call": 0})["graph_call"] for p in self.processes), "graph calls")
        for x in self.execs if not any(r["brief"] for r in self.graph_sums) else ():
            mine = [r for r in lower if (r["pid"], r["exec"], r["exec_generation"]) ==
                    (x["pid"], x["handle"], x["generation"])]
            for field, kind, failed in (("launches", "launch", False), ("failed_launches", "launch", True),
                                        ("updates", "update", False), ("failed_updates", "update", True),
                                        ("set_params", "setparams", False), ("uploads", "upload", False)):
                reported = sum(r["count"] for r in mine if r["kind"] == kind and bool(r["result"]) == failed)
                equal(reported, x[field], f"{field} of {x}")

    def held(self):
        """Memory held according to the calls, by process and holding. The count of mappings comes from the driver,
        since one unmap call may remove several."""
        out = {key: [-n for n in of] for key, of in self.released.items()}
        for row in self.find(layer="driver", result=0):
            if row["holding"] and row["kind"] != "setup":
                of = out.setdefault((row["pid"], row["holding"]), [0, 0])
                sign = 1 if row["kind"] == "alloc" else -1
                of[0] += sign * row["count"] * row["bytes"]
                of[1] += sign * row["count"]
        for key, of in out.items():
            if key[1] == "mapped":
                of[1] = self.memory.get(key, (0, 0))[1]
        return {key: tuple(of) for key, of in out.items() if any(of)}

    def find(self, **fields):
        return [r for r in self.calls if all(r[k] == v for k, v in fields.items())]

    def count(self, **fields):
        return sum(r["count"] for r in self.find(**fields))

    def one(self, **fields):
        found = self.find(**fields)
        equal(len(found), 1, f"rows with {fields}")
        return found[0]


def run(form, script, env=None, code=0):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "truth")
        done = subprocess.run([build / form, "--truth", path, script], env=env or environment(), timeout=60,
                              stderr=subprocess.PIPE, text=True)
        equal(done.returncode, code, f"{form}: {script}: {done.stderr}")
        return Truth(path) if code == 0 else done.stderr


@check
def every_form_launches():
    for form in RUNTIMES + DRIVERS:
        truth = run(form, "launch vecadd 100003; launch saxpy 7 grid=2,3,4 block=8,4,2 smem=512 stream=1 # comment")
        nested = form in RUNTIMES
        row = truth.one(function="cuLaunchKernel", kernel="_Z6vecaddPKfS0_Pfi")
        equal((row["count"], row["result"], row["nested"], row["recorded"]), (100003, 0, nested, False), form)
        equal(row["demangled"], "vecadd(float const*, float const*, float*, int)")
        row = truth.one(function="cuLaunchKernel", kernel="_Z5saxpyPfPKff")
        equal((row["grid"], row["block"], row["smem"], row["count"]), ([2, 3, 4], [8, 4, 2], 512, 7), form)
        assert int(row["stream"], 16) > 4096 and int(row["handle"], 16) > 4096
        equal(truth.count(layer="runtime", function="cudaLaunchKernel"), 100010 if nested else 0, form)
        process, = truth.processes
        equal((process["program"], process["exec"], process["parent"]), (form, False, os.getpid()))


@check
def a_million_launches_are_all_counted():
    for form in ("workload", "workload13", "workload-driver"):
        equal(run(form, "launch vecadd 1000003").count(layer="driver", kind="kernel"), 1000003)


@check
def all_kernels_have_their_own_handles():
    for form in RUNTIMES:
        truth = run(form, "; ".join(f"launch {k} 2" for k in ("vecadd", "saxpy", "reduce", "apply", "scale")))
        for layer in ("runtime", "driver"):
            rows = truth.find(layer=layer, kind="kernel")
            equal(len({r["handle"] for r in rows}), 5, form)
            equal({r["kernel"] for r in rows}, {"_Z6vecaddPKfS0_Pfi", "_Z5saxpyPfPKff", "_Z6reduceIfEvPKT_PS0_i",
                                                "_ZN6detail5applyILi4EfEEvT0_Pf", "_Z5scalePfi"})


@check
def every_driver_function_launches():
    names = ["cuLaunchKernel", "cuLaunchKernel_ptsz", "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz",
             "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel_ptsz", "cuLaunch", "cuLaunchGrid",
             "cuLaunchGridAsync", "cuLaunchCooperativeKernelMultiDevice"]
    for form in DRIVERS + ("workload", "workload13"):
        truth = run(form, "\n".join(f"launch reduce {i + 1} fn={n} grid=2,3 block=4 stream=1 devices=2"
                                    for i, n in enumerate(names)))
        for i, name in enumerate(names):
            row = truth.one(function=name)
            equal((row["count"], row["result"], row["nested"], row["block"]), (i + 1, 0, False, [4, 1, 1]), name)
            equal(row["grid"], [1, 1, 1] if name == "cuLaunch" else [2, 3, 1], name)
            equal(row["stream"] == "0x0", name in ("cuLaunch", "cuLaunchGrid"), name)
            equal(row["kernels"], 2 if "Multi" in name else 1, name)


@check
def every_runtime_function_launches():
    pairs = {"cudaLaunchKernel": "cuLaunchKernel", "cudaLaunchKernelExC": "cuLaunchKernelEx",
             "cudaLaunchCooperativeKernel": "cuLaunchCooperativeKernel", "__cudaLaunchKernel": "cuLaunchKernel"}
    for form in RUNTIMES:
        for function, nested in pairs.items():
            for suffix in ("", "_ptsz"):
                truth = run(form, f"launch apply 3 fn={function}{suffix} grid=5")
                upper = truth.one(layer="runtime", kind="kernel")
                lower = truth.one(layer="driver", kind="kernel")
                equal((upper["function"], lower["function"]), (function.strip("_") + suffix, nested + suffix), form)
                equal((upper["count"], lower["count"], lower["nested"]), (3, 3, True), function)
                assert upper["handle"] != lower["handle"]
    truth = run("workload", "launch apply 3 fn=cudaLaunchCooperativeKernelMultiDevice devices=4")
    equal(truth.one(layer="runtime", kind="kernel")["kernels"], 4)
    equal(truth.one(layer="driver", kind="kernel")["count"], 12)
    assert "no function" in run("workload13", "launch apply 3 fn=cudaLaunchCooperativeKernelMultiDevice", code=1)


@check
def failures_are_reported_per_layer():
    for form in RUNTIMES:
        truth = run(form, "launch vecadd 5 result=719; launch vecadd 6 runtime_result=35; launch null 2\n"
                          "launch unregistered 3 fn=cudaLaunchKernel; launch vecadd 4 block=0; launch vecadd 1")
        rows = {(r["layer"], r["result"]): r["count"] for r in truth.find(kind="kernel", kernel="_Z6vecaddPKfS0_Pfi")}
        equal(rows, {("driver", 719): 5, ("runtime", 719): 5, ("runtime", 35): 6, ("driver", 1): 4, ("runtime", 1): 4,
                     ("driver", 0): 1, ("runtime", 0): 1}, form)
        equal(truth.one(result=98)["count"], 3)
        equal(truth.one(result=400, nested=False)["count"], 2)
    assert "runtime_result" in run("workload-driver", "launch vecadd 1 runtime_result=1", code=2)


@check
def delays_and_gaps_take_time():
    start = time.monotonic()
    equal(run("workload", "launch vecadd 10 delay_us=5000; launch vecadd 10 gap_us=5000").count(layer="driver",
                                                                                             kind="kernel"), 20)
    assert 0.1 <= time.monotonic() - start < 2


@check
def captures_are_recorded_and_graphs_launched():
    for form in RUNTIMES + DRIVERS:
        script = ("capture begin; launch vecadd 3 stream=1; launch saxpy 2 stream=1; launch saxpy 9\n"
                  "launch vecadd 1 stream=1 result=719; capture end; graph 10 stream=1; launch vecadd 4 stream=1\n"
                  "build reduce 7 grid=3; graph 2; graph 1 result=700")
        truth = run(form, script)
        equal(truth.count(layer="driver", recorded=True), 5, form)
        equal(truth.count(layer="driver", kind="kernel", recorded=False), 14, form)
        rows = {(r["kernels"], r["result"]): r["count"] for r in truth.find(layer="driver", kind="graph")}
        equal(rows, {(5, 0): 10, (7, 0): 2, (7, 700): 1}, form)
        equal(truth.count(layer="runtime", kind="graph"), 13 if form in RUNTIMES else 0)
    for begin in ("cuStreamBeginCapture", "cuStreamBeginCapture_v2_ptsz", "cudaStreamBeginCapture_ptsz"):
        for make in ("cuGraphInstantiate", "cuGraphInstantiate_v2", "cuGraphInstantiateWithParams",
                     "cudaGraphInstantiate"):
            truth = run("workload", f"capture begin fn={begin}; launch saxpy 2 stream=1\n"
                                    f"capture end instantiate={make}\n"
                                    "graph 3 fn=cuGraphLaunch_ptsz; graph 4 fn=cudaGraphLaunch_ptsz")
            equal(truth.count(function="cuGraphLaunch_ptsz"), 7)
            made, = (r for r in truth.graph_calls if r["function"] == make)
            equal((made["kind"], made["count"], made["nested"]), ("instantiate", 1, False))


@check
def host_functions():
    for form, names in (("workload-driver", ["cuLaunchHostFunc", "cuStreamAddCallback_ptsz"]),
                        ("workload13", ["cudaLaunchHostFunc_ptsz", "cudaStreamAddCallback", "cuLaunchHostFunc"])):
        for name in names:
            truth = run(form, f"hostfunc 5 fn={name} stream=2")
            lower = truth.one(layer="driver", kind="host")
            equal((lower["function"], lower["count"], lower["nested"]),
                  (name.replace("cuda", "cu"), 5, name.startswith("cuda")))


@check
def threads_have_their_own_rows():
    for form in ("workload", "workload-driver"):
        truth = run(form, "threads 4; name worker; repeat 3; launch vecadd 1000; end; end; launch vecadd 1")
        rows = truth.find(layer="driver", kind="kernel")
        equal(sorted(r["count"] for r in rows), [1, 3000, 3000, 3000, 3000])
        equal(len({r["tid"] for r in rows}), 5)
        equal({r["comm"] for r in rows if r["count"] == 3000}, {"worker"})


@check
def children_and_exec_share_the_truth_file():
    for form in ("workload", "workload-driver"):
        truth = run(form, "launch vecadd 5; fork; launch vecadd 7; fork; launch saxpy 2; end; end; launch vecadd 1\n"
                          "exec; launch scale 3; end; launch vecadd 99")
        equal(len(truth.processes), 4)
        first = [p for p in truth.processes if p["parent"] == os.getpid()]
        equal(sorted(p["exec"] for p in first), [False, True])
        child, = (p for p in truth.processes if p["parent"] == first[0]["pid"])
        equal(truth.count(layer="driver", kind="kernel", pid=child["pid"]), 7)
        equal(truth.count(layer="driver", kind="kernel", pid=first[0]["pid"]), 9)
        equal(truth.count(layer="driver", kind="kernel"), 18)
    truth = run("workload", "exec workload-driver; launch vecadd 3; end")
    equal([p["program"] for p in truth.processes], ["workload", "workload-driver"])


@check
def signals_end_loops_and_write_the_truth():
    for script in ("touch {}/up; forever; launch vecadd 100; end",
                   "fork; touch {}/up; forever; launch vecadd 100; end; end",
                   "threads 2; touch {}/up; forever; launch saxpy 10 gap_us=100; end; end",
                   "touch {}/up; wait {}/never"):
        with tempfile.TemporaryDirectory() as directory:
            path = directory + "/truth"
            process = subprocess.Popen([build / "workload", "--truth", path, script.replace("{}", directory)],
                                       env=environment())
            while not os.path.exists(directory + "/up"):
                time.sleep(0.002)
            time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            equal(process.wait(10), 0, script)
            truth = Truth(path)
            equal(truth.count(layer="driver", kind="kernel") > 0, "wait" not in script)


@check
def waiting_and_touching():
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen([build / "workload", f"touch {directory}/up; wait {directory}/go; launch vecadd 1"],
                                   env=environment())
        while not os.path.exists(directory + "/up"):
            time.sleep(0.002)
        equal(process.poll(), None)
        open(directory + "/go", "w").close()
        equal(process.wait(10), 0)


@check
def devices_handles_and_depth():
    truth = run("workload", "launch vecadd 1; device 1; launch vecadd 2; threads 1; launch vecadd 4; end\n"
                            "deeper 20000; launch vecadd 8 fn=cuLaunchKernel; end")
    equal({r["device"]: r["count"] for r in truth.find(layer="driver", nested=True)
           if r["tid"] == r["pid"]}, {0: 1, 1: 2})
    equal(truth.count(layer="driver", device=1), 14)
    truth = run("workload-driver", "launch vecadd 1; lookup vecadd; launch vecadd 2; reload; launch vecadd 3\n"
                                   "launch vecadd 4 handle=kernel; device 1; launch vecadd 5")
    equal(truth.count(kind="kernel"), 15)
    equal(truth.count(function="cuModuleGetFunction"), 4)


@check
def names_may_contain_any_byte():
    truth = run("workload-driver", r"name a\x1b[31m\s\"b; launch evil\x1b[2J\nname 2")
    row = truth.one(kind="kernel")
    equal((row["comm"], row["kernel"]), ('a\x1b[31m "b', "evil\x1b[2J\nname"))


@check
def driver_can_be_opened_late_from_another_path():
    equal(run("workload-dlopen", "sleep 1").processes[0]["driver_counts"], None)
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(build / "libcuda.so.1", directory + "/libcuda.so.1")
        program = [build / "workload", f"launch vecadd 1; touch {directory}/up; wait {directory}/go"]
        process = subprocess.Popen(program, env=environment(LD_LIBRARY_PATH=directory))
        while not os.path.exists(directory + "/up"):
            time.sleep(0.002)
        maps = open(f"/proc/{process.pid}/maps").read()
        open(directory + "/go", "w").close()
        equal(process.wait(10), 0)
        assert directory + "/libcuda.so.1" in maps and str(build / "libcudart.so.12") in maps.replace(".9.99", "")
        truth = run("workload-dlopen", f"sleep 1; dlopen {directory}/libcuda.so.1; launch vecadd 3")
        equal(truth.count(kind="kernel"), 3)


@check
def invalid_scripts_are_refused():
    for script, message in (("launhc vecadd 1", "no such step"), ("launch vecadd 1 strem=1", "no such option"),
                            ("launch vecadd many", "not a number"), ("launch vecadd", "missing"), ("end", "'end'"),
                            ("repeat 2; sleep 1", "'end' is missing"), ("graph 1", "no graph yet"),
                            ("launch nosuch 1 fn=cudaLaunchKernel", "no stub"),
                            ("launch vecadd 1 fn=cuMemFree", "does not launch"),
                            ("threads 1; fork; end; end", "only allowed in the main thread")):
        assert message in run("workload", script, code=2), script


@check
def banner_states_that_no_gpu_work_is_done():
    done = subprocess.run([build / "workload", "--banner", "sleep 1"], env=environment(), capture_output=True,
                          text=True)
    equal((done.stdout, done.stderr), ("", "stand-in CUDA driver: no GPU work is done\n"))
