# SPDX-License-Identifier: Apache-2.0
"""gpualloc: owners of memory (processes, cgroups, containers and pods), filters by them, and values that are not exact."""
import re

import harness
import memory
from containers import Cgroup, Container, HostRoot, Image, Name, kubepods
from harness import check, equal, wait_until
from memory import case
from programs import Tool, Workload
from test_cgroups import fresh
from test_containers import only_row, same_owner, traced
from test_alloc_ends import leaked, leaks, newest
from test_hostile import comms, no_control_bytes, no_control_bytes_in_json

script = "alloc a 1000; alloc b 2000 fn=cudaMallocHost; threads 2; repeat 10; alloc c 300; free c; end; alloc d 70; end; free a\n"


def own(rows, pid):
    return [row for row in rows if row["pid"] == pid]


# --- filters ---------------------------------------------------------------------------------------------------------

@case
def two_processes():
    a, b, c = (Workload(f"alloc x {size}; " + script) for size in (11, 13, 17))
    tool = Tool("-p", f"{a.pid},{b.pid}", "--by", "pid,kind")
    truth = [workload.go().truth() for workload in (a, b, c)]
    memory.same_calls(tool.finish(), truth[0] + truth[1], by=("pid", "kind"))
    equal({row["pid"] for row in tool.rows}, {a.pid, b.pid}, "processes")
    for workload, size in (a, 11), (b, 13):
        rows = own(tool.rows, workload.pid)
        equal(sum(row["live_bytes"] + row["released_bytes"] for row in rows), 2140 + size, f"unfreed memory of {workload.pid}")


# --- cgroups and containers ------------------------------------------------------------------------------------------

@case(each={"v2": "v2", "memory": "memory"}, long=["memory"])
def only_this_cgroup(hierarchy):
    group = Cgroup(hierarchy, fresh())
    a, b = (Workload(script, form, preexec=group.join) for form in ("workload", "workload13"))
    neighbour = Workload(script)
    tools = [Tool("-c", group.path, "--by", "pid,kind"), Tool("-c", group.path, "--leaks")]
    truth = [workload.go().truth() for workload in (a, b)]
    neighbour.go().wait()
    memory.same_calls(tools[0].stop(), truth[0] + truth[1], by=("pid", "kind"))
    equal({row["pid"] for row in tools[0].rows}, {a.pid, b.pid}, "processes")
    tools[1].stop()
    equal({row["pid"] for row in tools[1].rows} - {a.pid, b.pid}, set(), "processes with leaks")


@case(each={"v2": "v2", "memory": "memory"}, long=["memory"], alone=True)
def moved_to_another_cgroup(hierarchy):
    """Memory belongs to the cgroup in which it was allocated, also if it is freed in another."""
    groups = [Cgroup(hierarchy, kubepods(Name())) for _ in range(2)]
    inside = Workload("alloc a 1000; alloc b 20; touch {dir}/there; wait {dir}/moved; free a; alloc c 300; alloc d 4; free d; sleep 500",
                      preexec=groups[0].join)
    tools = {by: Tool("-p", inside.pid, "--by", by, "-i", "0.2") for by in ("cgroup", "container", "pod")}
    inside.go()
    wait_until((harness.here / "there").exists, "memory is allocated in the first cgroup")
    groups[1].add(inside.pid)
    (harness.here / "moved").touch()
    inside.wait()
    for by, tool in tools.items():
        tool.finish()
        for group, want in zip(groups, ((2, 1, 1020, 1000), (2, 1, 304, 4))):
            rows = [row for row in tool.rows if row["cgroup"] == group.inside]
            got = tuple(sum(row[name] for row in rows) for name in ("allocs", "frees", "allocated_bytes", "freed_bytes"))
            equal(got, want, f"{tool}: in {group.inside}")


@case(asan=True, alone=True)
def containers_and_pods():
    """Live memory of two containers of one pod and one of another, with names from the host."""
    host, first, foreign = HostRoot(), Name(), Name()
    second = Name(pod=first.pod, namespace=first.namespace, pod_uid=first.pod_uid)
    names, image = (first, second, foreign), Image()
    inside = []
    for i, name in enumerate(names):
        host.kubelet(name)
        inside.append(Container(f"alloc a {1000 * 10 ** i}; alloc b 5; free b; touch {{dir}}/held{i}; wait {{dir}}/end",
                                cgroups=[Cgroup("v2", kubepods(name))], image=image))
    tools = {by: traced(host, "--by", by, "-i", "0.3", "-r", 0) for by in ("container", "pod")}
    only = traced(host, "-c", f"pod:{first.namespace}/{first.pod}", "--by", "container")
    for i, workload in enumerate(inside):
        workload.go()
        wait_until((harness.here / f"held{i}").exists, "the container has allocated")
    for i, name in enumerate(names):
        wait_until(lambda: [r for r in newest(tools["container"]) if r.get("container_id") == name.id], name.container)
        row = only_row(newest(tools["container"]), container_id=name.id)
        same_owner(row, **name.labels, runtime="containerd", cgroup=row["cgroup"])
        equal((row["live_bytes"], row["live_allocations"]), (1000 * 10 ** i, 1), f"{row}")
    wait_until(lambda: {r.get("pod_uid"): r["live_bytes"] for r in newest(tools["pod"])}.items() >=
               {first.pod_uid: 11000, foreign.pod_uid: 100000}.items(), "pods")
    (harness.here / "end").touch()
    for workload in inside:
        workload.wait()
    for tool in tools.values():
        tool.stop()
    equal({row["container_id"]: row["allocs"] for row in only.stop().rows}, {first.id: 2, second.id: 2}, f"{only}")


@case(asan=True, alone=True)
def leaks_in_a_container():
    """Names in stacks come from the container's files, which the host lacks; the process has pid 1 in its namespace."""
    name = Name()
    inside = Container("alloc a 1000; alloc b 2000 fn=cudaMallocHost; repeat 3; alloc c 10; end; sleep 2000\nwait {dir}/end",
                       cgroups=[Cgroup("v2", kubepods(name))])
    tool, exited = Tool("-p", inside.pid, "--leaks", "-i", "0.2"), Tool("-p", inside.pid, "--exited")
    inside.go()
    want = leaks(device=(1030, 4), pinned=(2000, 1))
    wait_until(lambda: leaked(tool) == want, f"{want}")
    (harness.here / "end").touch()
    inside.wait()
    rows = [row for row in tool.finish().rows]
    for row in rows:
        equal((row["ns_pid"], row["container_id"]), (1, name.id), "process and container")
    ends = exited.finish().events
    equal([(e["event"], e["held_bytes"], e["container_id"]) for e in ends],
          [("exit", 3030, name.id), ("held", 2000, name.id), ("held", 1000, name.id), ("held", 30, name.id)], "lines of the exit")
    for each in [*rows, *ends[1:]]:
        check(any("workload::" in frame and "(workload)" in frame for frame in each["frames"]), f"no frame names a function: {each}")


@case(alone=True)
def older_processes_have_lower_bounds():
    """Memory allocated before tracing is unknown, so the values of a process that ran before are lower bounds. A
    process that started later, or whose exec was traced, has exact values."""
    older = Workload("alloc a 1000; touch {dir}/held; wait {dir}/traced; alloc b 2000; forever; sleep 20; end")
    replaced = Workload("wait {dir}/traced; alloc a 10; exec; alloc b 500; forever; sleep 20; end; end")
    for workload in older, replaced:
        workload.go()
    wait_until((harness.here / "held").exists, "memory is allocated")
    tools = [Tool("-i", "0.2", json=json) for json in (True, False)]
    (harness.here / "traced").touch()
    younger = Workload("alloc c 3000; forever; sleep 20; end", warm=False)
    want = {older.pid: (2000, 1), replaced.pid: (500, 0), younger.pid: (3000, 0)}
    seen = lambda: {row["pid"]: (row["live_bytes"], row["live_is_lower_bound"]) for row in newest(tools[0])}
    wait_until(lambda: seen().items() >= want.items(), f"{want}")
    wait_until(lambda: re.search(rf"^ *{older.pid} \S+ +>=2.0K +>=1 ", tools[1].text, re.M), "lower bounds in the text")
    wait_until(lambda: re.search(rf"^ *{younger.pid} \S+ +2.9K +1 ", tools[1].text, re.M), "exact figures in the text")
    for tool in tools:
        tool.stop()


@case
def inexact_values_are_marked():
    """Text marks inexact values with ~, only in rows of the affected process, and has a column of unknown frees."""
    workload, exact = (Workload(f"alloc x 9; wait {{dir}}/ready; {more}; touch {{dir}}/{i}; wait {{dir}}/end", "workload-driver")
                       for i, more in enumerate(("repeat 2000; alloc a 64; end; free x", "alloc b 4444")))
    for each in workload, exact:
        each.go()
    pids = f"{workload.pid},{exact.pid}"
    tools = [Tool("-p", pids, "--live-entries", 1024, "-i", "0.3", losses=True, json=json) for json in (True, False)]
    (harness.here / "ready").touch()
    rows = lambda: {row["pid"]: row for row in newest(tools[0])}
    wait_until(lambda: rows().get(workload.pid, {}).get("approximate") == 1 and exact.pid in rows(), "an approximate row")
    check(rows()[exact.pid]["live_allocations"] <= 1, "too many live allocations of the process with exact values")
    wait_until(lambda: re.search(rf"^ *{workload.pid} .* ~ ", tools[1].text, re.M), "~ in the text")
    (harness.here / "end").touch()
    for each in workload, exact:
        each.wait()
    for tool in tools:
        tool.finish()
    last = tools[1].text.split("PID COMM")[-2].splitlines()
    check("UNKNOWN" in tools[1].text, f"no column of unknown frees: {tools[1].text}")
    check(any(str(workload.pid) in line and " ~ " in line for line in last), f"{last}")
    check("--live-entries" in tools[1].error, f"the remedy is missing: {tools[1].error}")


@case(each={"events": ["-e"], "exited": ["--exited"]})
def hostile_names(mode):
    """Process names with escape sequences, newlines or invalid UTF-8 are escaped."""
    text = "\n".join(f"name {comm}\nalloc a{i} {1000 + i}; alloc z 5 result=2" for i, comm in enumerate(comms))
    workload = Workload(text + f"; name {comms[0]}; sleep 300", "workload-driver")
    tools = [Tool("-p", workload.pid, *mode, json=json) for json in (False, True)]
    workload.go().wait()
    no_control_bytes(tools[0].finish())
    no_control_bytes_in_json(tools[1].finish())
    if mode == ["-e"]:
        equal(len(tools[0].lines) - 1, 2 * len(comms), "lines")
