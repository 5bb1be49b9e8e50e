# SPDX-License-Identifier: Apache-2.0
"""gpualloc: owners of memory (processes, threads, cgroups, containers and pods), and filters by them."""
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
from test_alloc_views import check_live_memory, live

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


@case(alone=True)
def by_name():
    """-n: allocations of processes or threads with that name, whichever thread frees them."""
    workload = Workload("alloc a 1000; name needle; alloc b 200; alloc c 30 fn=cudaMallocHost; name hay; free b; alloc d 4; free a")
    other = Workload("alloc e 50000")
    tool, lines = Tool("-n", "needle", "--by", "pid"), Tool("-n", "needle", "-e")
    for each in workload, other:
        each.go().wait()
    row, = tool.stop().rows
    equal((row["pid"], row["allocs"], row["allocated_bytes"], row["frees"], row["freed_bytes"], row["unknown_frees"]),
          (workload.pid, 2, 230, 1, 200, 0), f"{row}")
    equal([(e["operation"], e["bytes"]) for e in lines.stop().events], [("alloc", 200), ("alloc", 30), ("free", 200)], "lines")


@case(asan=True)
def one_thread():
    """-t counts the thread's allocations, even if another thread frees them. If the thread frees memory that another
    thread allocated, the free counts as unknown."""
    workload = Workload("alloc a 1000; alloc b 50 fn=cudaMallocHost; threads 1; touch {dir}/there; wait {dir}/attached; free a\n"
                        "alloc d 9; free d; alloc e 30; alloc f 4; end; free b; free e")
    leader = [Tool("-t", workload.pid, *more) for more in ([], ["-e"])]
    workload.go()
    wait_until((harness.here / "there").exists, "the thread has started")
    tid, = workload.threads()
    other = [Tool("-t", tid, *more) for more in ([], ["-e"])]
    (harness.here / "attached").touch()
    workload.wait()
    for (table, lines), want, want_lines in (
            (leader, (2, 2, 1050, 1050, 1), [("alloc", 1000, workload.pid), ("alloc", 50, workload.pid), ("free", 1000, tid),
                                             ("free", 50, workload.pid), ("free", None, workload.pid)]),
            (other, (3, 2, 43, 39, 1), [("free", None, tid), ("alloc", 9, tid), ("free", 9, tid), ("alloc", 30, tid),
                                        ("alloc", 4, tid), ("free", 30, workload.pid)])):
        rows = table.finish().rows
        equal(tuple(sum(row[name] for row in rows) for name in ("allocs", "frees", "allocated_bytes", "freed_bytes",
                                                                "unknown_frees")), want, f"{table}")
        equal([(e["operation"], e.get("bytes"), e["tid"]) for e in lines.finish().events], want_lines, f"{lines}")


@case
def one_thread_whose_memory_another_frees():
    workload = Workload("threads 2; wait {dir}/attached; alloc a 1000; alloc b 50 fn=cudaMallocHost; alloc k 7; wait {dir}/free\n"
                        "free a; free b; end", "workload").go()
    tids = workload.threads(2)
    tools = [Tool("-t", tid, "--by", "thread,kind") for tid in tids]
    everybody = Tool("-p", workload.pid, "--by", "thread,kind")
    for name in "attached", "free":
        (harness.here / name).touch()
    workload.wait()
    want = {tid: {} for tid in tids}
    for row in everybody.finish().rows:
        want[row["tid"]][row["kind"]] = row["allocs"], row["frees"], row["allocated_bytes"], row["freed_bytes"], sum(live(row))
    for tid, tool in zip(tids, tools):
        got = {row["kind"]: (row["allocs"], row["frees"], row["allocated_bytes"], row["freed_bytes"], sum(live(row)))
               for row in tool.finish().rows}
        # Frees of the other thread's memory are unknown to a tool with -t, and give an extra row of zeros.
        equal({kind: counts for kind, counts in got.items() if any(counts)}, want[tid], f"counts of thread {tid}")
    equal({kind: sum(each[kind][:2][1] for each in want.values()) for kind in ("device", "pinned")}, {"device": 2, "pinned": 2},
          "frees by any thread")


# --- cgroups and containers ------------------------------------------------------------------------------------------

@case(each={"v2": "v2", "memory": "memory"}, asan=True)
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


@case(each={"v2": "v2", "memory": "memory"}, asan=True, alone=True)
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
        check_live_memory(tool.finish())
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
