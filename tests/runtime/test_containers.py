# SPDX-License-Identifier: Apache-2.0
"""Containers with their own root, libraries, pid namespace and cgroups: each has its own rows, with names."""
import os
import secrets

import harness
from containers import Cgroup, Container, HostRoot, Image, Name, RuncContainer, hierarchies, kubepods, kubepods_cgroupfs
from harness import Skip, case, check, equal, wait_until
from programs import Tool, Workload
from test_cgroups import fresh
from test_refusals import check_reason
from truth import launched, totals

script = "launch vecadd 1009; threads 3; launch saxpy 101; end"
owner_keys = ("container", "container_id", "runtime", "pod", "namespace", "pod_uid", "unit", "uid", "slurm_job",
              "slurm_step", "cgroup")


def traced(host, *arguments, **options):
    return Tool(*arguments, "--host-root", host.path, preexec=host.enter, **options)


def contained(path, text=script, *, hierarchy="v2", **options):
    return Container(text, cgroups=[Cgroup(hierarchy, path)], **options)


def launches_of(*workloads):
    """Runs the workloads, and returns the number of launches of each."""
    for workload in workloads:
        workload.go()
    return [launched(workload.truth()) for workload in workloads]


def only_row(rows, **fields):
    found = [row for row in rows if all(row.get(key) == value for key, value in fields.items())]
    check(len(found) == 1, f"not exactly one row with {fields}: {found or [{k: r.get(k) for k in fields} for r in rows]}")
    return found[0]


def same_owner(row, **want):
    """Checks that the row has exactly these owner fields."""
    equal({key: row[key] for key in owner_keys if key in row}, want, "owner")


def by_ids(tool, field, names):
    """Launches by id, only for containers of this case: the machine may run others."""
    wanted = {getattr(name, "id" if field == "container_id" else field) for name in names}
    return {key: count for (key,), count in totals(tool.rows, field).items() if key in wanted}


# --- owner from the path of the cgroup -------------------------------------------------------------------------------

def nested_id(name, node):
    return f"docker/{node}/kubelet/{kubepods_cgroupfs(name)}"


layouts = {
    "containerd": (kubepods, "containerd", True), "containerd_cgroupfs": (kubepods_cgroupfs, None, True),
    "cri-o": (lambda name: kubepods(name, "crio"), "cri-o", True),
    "docker": (lambda name: f"system.slice/docker-{name.id}.scope", "docker", False),
    "docker_cgroupfs": (lambda name: f"docker/{name.id}", "docker", False),
    "podman": (lambda name: f"machine.slice/libpod-{name.id}.scope", "podman", False),
}


@case(each={"v2": "v2", "memory": "memory"}, alone=True)
def owner_from_the_path(hierarchy):
    image, names = Image(), {layout: Name() for layout in layouts}
    groups = {layout: Cgroup(hierarchy, layouts[layout][0](name)) for layout, name in names.items()}
    inside = {layout: Container(script, image=image, cgroups=[group]) for layout, group in groups.items()}
    tools = [Tool("--by", "container"), Tool("--by", "pid,kernel"), Tool("-e")]
    counts = dict(zip(layouts, launches_of(*inside.values())))
    by_container, by_kernel, events = (tool.stop().rows + tool.events for tool in tools)
    for layout, (_, runtime, in_pod) in layouts.items():
        name, pid, count = names[layout], inside[layout].pid, counts[layout]
        want = {"container_id": name.id, "cgroup": groups[layout].inside}
        want |= {"runtime": runtime} if runtime else {}
        want |= {"pod_uid": name.pod_uid} if in_pod else {}
        row = only_row(by_container, container_id=name.id)
        same_owner(row, **want)
        equal(row["launches"], count, f"launches in {layout}")
        for rows, wanted in (by_kernel, sum(row["launches"] for row in by_kernel if row["pid"] == pid)), (events, None):
            mine = [row for row in rows if row["pid"] == pid]
            equal(len(mine) if wanted is None else wanted, count, f"launches in {layout}")
            for row in mine:
                same_owner(row, **want)


@case(each={"v2": "v2", "memory": "memory"}, alone=True)
def a_node_in_a_container(hierarchy):
    """If a Kubernetes node runs in a container, its pods are reported as pods. But if the host itself has pods, calls
    of the node's pods are reported for the node's container."""
    name, node = Name(), secrets.token_hex(32)
    group = Cgroup(hierarchy, nested_id(name, node))
    without = Workload("launch vecadd 11", preexec=group.join)
    tool = Tool("--by", "container")
    without.go().wait()
    same_owner(only_row(tool.stop().rows, container_id=name.id), container_id=name.id, pod_uid=name.pod_uid,
               cgroup=group.inside)
    Cgroup(hierarchy, kubepods(Name()))
    within = Workload("launch vecadd 13", preexec=group.join)
    tool = Tool("--by", "container")
    within.go().wait()
    same_owner(only_row(tool.stop().rows, container_id=node), container_id=node, runtime="docker", cgroup=group.inside)


units = {
    "service": (("v2", "memory"), "system.slice/trainer-{tag}.service", {"unit": "trainer-{tag}.service"}),
    "session": (("v2", "memory"), "user.slice/user-1207.slice/session-{tag}.scope",
                {"unit": "session-{tag}.scope", "uid": 1207}),
    "of_user": (("v2",), "user.slice/user-1207.slice/user@1207.service/app.slice/run-{tag}.service",
                {"unit": "run-{tag}.service", "uid": 1207}),
    "slurm_v1": (("memory",), "slurm/uid_1207/job_{number}/step_0/task_3",
                 {"slurm_job": "{number}", "slurm_step": "0", "uid": 1207}),
    "slurm_v2": (("v2",), "system.slice/slurmstepd.scope/job_{number}/step_batch/user/task_0",
                 {"slurm_job": "{number}", "slurm_step": "batch", "unit": "slurmstepd.scope"}),
    "slurm_sluid": (("v2",), "system.slice/slurmstepd.scope/s000007{number}/step_0/user/task_0",
                    {"slurm_job": "s000007{number}", "slurm_step": "0", "unit": "slurmstepd.scope"}),
}


@case(each={"v2": "v2", "memory": "memory"}, alone=True)
def units_and_jobs(hierarchy):
    wanted = {}
    for where, path, want in units.values():
        if hierarchy in where:
            put = {"tag": secrets.token_hex(4), "number": str(10 ** 6 + secrets.randbelow(10 ** 6))}
            wanted[Cgroup(hierarchy, path.format(**put))] = {
                k: v.format(**put) if isinstance(v, str) else v for k, v in want.items()}
    inside = [Workload(script, preexec=group.join) for group in wanted]
    tool = Tool("--by", "cgroup")
    counts = launches_of(*inside)
    tool.stop()
    for (group, want), count in zip(wanted.items(), counts):
        row = only_row(tool.rows, cgroup=group.inside)
        equal(row["launches"], count, f"launches in {group.inside}")
        same_owner(row, cgroup=group.inside, **want)


@case(alone=True)
def moved_to_another_cgroup():
    """Each call counts for the cgroup in which it was made."""
    groups = [Cgroup("v2", fresh()) for _ in range(2)]
    inside = Workload("launch vecadd 1009; touch {dir}/there; wait {dir}/moved; launch vecadd 503",
                      preexec=groups[0].join)
    tool = Tool("--by", "cgroup")
    inside.go()
    wait_until((harness.here / "there").exists, "the workload has launched in the first cgroup")
    groups[1].add(inside.pid)
    (harness.here / "moved").touch()
    inside.wait()
    counts = totals(tool.stop().rows, "cgroup")
    equal([counts.get((group.inside,)) for group in groups], [1009, 503], "launches")


# --- names from files of the host ------------------------------------------------------------------------------------

sources = {"kubelet": (HostRoot.kubelet, kubepods, "containerd"),
           "containerd": (HostRoot.containerd, kubepods, "containerd"),
           "containerd_v1": (HostRoot.containerd, kubepods_cgroupfs, "containerd"),
           "docker": (HostRoot.docker, lambda name: f"system.slice/docker-{name.id}.scope", "docker")}


@case(each=sources, asan=True, alone=True)
def names_from_the_host(source):
    fill, path, runtime = source
    host, name = HostRoot(), Name()
    fill(host, name)
    group = Cgroup("memory" if path is kubepods_cgroupfs else "v2", path(name))
    inside = Container(script, cgroups=[group])
    tools = [traced(host, "--by", "container"), traced(host, "--by", "pid,container"), traced(host, "-e")]
    table = traced(host, "--by", "container", json=False)
    count, = launches_of(inside)
    want = name.labels if runtime != "docker" else {"container": name.container, "container_id": name.id}
    want |= {"runtime": runtime, "cgroup": group.inside}
    for tool in tools[:2]:
        row = only_row(tool.stop().rows, container_id=name.id)
        same_owner(row, **want)
        equal(row["launches"], count, f"launches of {tool}")
    events = [event for event in tools[2].stop().events if event["pid"] == inside.pid]
    equal(len(events), count, "lines")
    same_owner(events[-1], **want)
    check(name.container in table.stop().text, f"the table lacks the container's name: {table.text}")


@case(each={"v2": "v2", "memory": "memory"}, alone=True)
def host_root_without_cgroups(hierarchy):
    """--host-root with only the metadata files: cgroups are read from their usual mounts."""
    host, name = HostRoot(), Name()
    host.kubelet(name)
    group = Cgroup(hierarchy, kubepods(name))
    inside = Container(script, cgroups=[group])
    tool = Tool("--by", "container", "--host-root", host.path)
    count, = launches_of(inside)
    row = only_row(tool.stop().rows, container_id=name.id)
    same_owner(row, **name.labels, runtime="containerd", cgroup=group.inside)
    equal(row["launches"], count, "launches")


@case(alone=True)
def cgroup_paths_with_host_root():
    """With --host-root, -c accepts paths of this machine and paths below that root."""
    host, name = HostRoot(), Name()
    group = Cgroup("v2", kubepods(name))
    inside = Container(script, cgroups=[group])
    tools = [traced(host, "-c", path, "--by", "container") for path in
             (group.path, f"{host.path}{group.path}", group.inside[1:], name.id)]
    count, = launches_of(inside)
    for tool in tools:
        equal(totals(tool.stop().rows, "container_id"), {(name.id,): count}, f"launches of {tool}")


@case(alone=True)
def pods_and_namespaces():
    """Two containers of one pod, another pod of the same namespace, and one of another namespace."""
    host = HostRoot()
    first = Name()
    second = Name(pod=first.pod, namespace=first.namespace, pod_uid=first.pod_uid)
    neighbour, foreign = Name(namespace=first.namespace), Name(pod=first.pod)
    names = [first, second, neighbour, foreign]
    image = Image()
    inside = []
    for i, name in enumerate(names):
        host.kubelet(name)
        inside.append(contained(kubepods(name), f"launch vecadd {1000 * (i + 1)}; launch saxpy {i + 1}", image=image))
    groupings = ("pod", "namespace", "container", "pod,kernel", "namespace,pod,container,pid")
    tools = {by: traced(host, "--by", by) for by in groupings}
    of_pod = traced(host, "-c", f"pod:{first.namespace}/{first.pod}", "--by", "container")
    launches_of(*inside)
    for tool in tools.values():
        tool.stop()
    equal(by_ids(tools["pod"], "pod_uid", names),
          {first.pod_uid: 3003, neighbour.pod_uid: 3003, foreign.pod_uid: 4004}, "by pod")
    same_owner(only_row(tools["pod"].rows, pod_uid=first.pod_uid), pod=first.pod, namespace=first.namespace,
               pod_uid=first.pod_uid, runtime="containerd")
    equal(by_ids(tools["namespace"], "namespace", names), {first.namespace: 6006, foreign.namespace: 4004},
          "by namespace")
    equal(by_ids(tools["container"], "container_id", names),
          {name.id: 1001 * (i + 1) for i, name in enumerate(names)}, "by container")
    by_kernel = {(row["kernel"].split("(")[0], row["launches"]) for row in tools["pod,kernel"].rows
                 if row.get("pod_uid") == first.pod_uid and row.get("kernel")}
    equal(by_kernel, {("vecadd", 3000), ("saxpy", 3)}, "by pod and kernel")
    last = tools["namespace,pod,container,pid"]
    for i, (name, workload) in enumerate(zip(names, inside)):
        row = only_row(last.rows, pid=workload.pid)
        same_owner(row, **name.labels, runtime="containerd", cgroup="/" + kubepods(name))
        equal(row["launches"], 1001 * (i + 1), "launches")
    equal(totals(of_pod.stop().rows, "container_id"), {(first.id,): 1001, (second.id,): 2002}, "containers of the pod")


@case(alone=True)
def a_container_by_its_name():
    host, name = HostRoot(), Name()
    host.docker(name)
    inside = contained(f"docker/{name.id}", hierarchy="memory")
    neighbour = Workload(script)
    tool = traced(host, "-c", name.container, "--by", "container")
    count, _ = launches_of(inside, neighbour)
    equal(totals(tool.stop().rows, "container"), {(name.container,): count}, "launches")


@case
def pods_that_cannot_be_found():
    """A pod on another machine, and one whose cgroup was removed."""
    host, name = HostRoot(), Name()
    host.kubelet(name)
    for what, words in ((f"pod:{name.namespace}/other", (name.namespace, "other")),
                        (f"pod:other/{name.pod}", ("other", name.pod)),
                        (f"pod:{name.namespace}/{name.pod}", ("cgroup", name.pod))):
        tool = Tool("-c", what, "--host-root", host.path, json=False, banner=False, preexec=host.enter)
        check_reason(tool.finish(1), 1, words)


@case(alone=True)
def hint_lists_containers():
    """The message about an unknown container lists containers that use CUDA, in the form that -c accepts."""
    host, pod, container = HostRoot(), Name(), Name()
    host.kubelet(pod).docker(container)
    ask = lambda *more: traced(host, "-c", "nosuch", *more, json=False, banner=False, attaches=False).finish(1).error
    none = ask()
    check("; no container runs a process that maps CUDA\n" in none, f"unexpected message without containers: {none}")
    contained(kubepods(pod)), contained(f"docker/{container.id}"), contained(fresh())
    message = ask()
    check(message.endswith(f"; containers with processes that map CUDA: {container.container}, pod:{pod.namespace}/{pod.pod}\n"), f"unexpected message with two containers: {message}")


# --- containers ------------------------------------------------------------------------------------------------------

@case(alone=True)
def library_missing_on_the_host():
    """The library is in the image and does not exist on the host: the tool opens it through /proc."""
    inside = contained(fresh(), "launch vecadd 1009; launch saxpy 503")
    check(not os.path.exists(inside.image.inside), f"the host has {inside.image.inside}")
    tools = [Tool("-p", inside.pid, "--by", "pid"),
             Tool("-c", inside.cgroups[0].path, "--by", "pid", "--api", "runtime"),
             Tool("--by", "pid", "-l")]
    launches_of(inside)
    tools[0].finish()
    for tool in tools[1:]:
        tool.stop()
    for tool in tools:
        equal(totals(tool.rows, "pid").get((inside.pid,)), 1512, f"launches of {tool}")


@case(asan=True, alone=True)
def two_containers_of_one_image():
    """Two containers map the same file through separate overlays. The file has one probe, but each container has its
    own launches."""
    image, names = Image(), [Name(), Name()]
    inside = [contained(kubepods(name), text, image=image)
              for name, text in zip(names, ("launch vecadd 1009", "launch vecadd 503; threads 2; launch saxpy 7; end"))]
    of_both = Cgroup("v2", kubepods(names[0]))  # parent cgroup, for -c
    tools = [Tool("--by", "container"), Tool("--by", "container", "-l"), Tool("--by", "container", "--api", "runtime")]
    one = Tool("-c", of_both.path, "--by", "container")
    launches_of(*inside)
    for tool in tools:
        equal(by_ids(tool.stop(), "container_id", names), {names[0].id: 1009, names[1].id: 517}, f"launches of {tool}")
    equal(totals(one.stop().rows, "container_id"), {(names[0].id,): 1009}, "launches of one")


@case(alone=True)
def process_ids_inside():
    """`pid` is the pid on the host, `ns_pid` the one in the container. Checked for a container's first process, its
    child, and a process outside."""
    inside = contained(kubepods(Name()), "launch vecadd 11; fork; touch {dir}/child; wait {dir}/run\n"
                                         "launch vecadd 7; end")
    outside = Workload("launch vecadd 3")
    rows, events = Tool("--by", "pid"), Tool("-e")
    inside.go()
    wait_until((harness.here / "child").exists, "the child runs")
    inside.find_child_pids()
    equal(sorted(inside.pids), [1, 2], "pids in the container")
    (harness.here / "run").touch()
    outside.go().wait()
    inside.wait()
    want = {(inside.pids[1], 1, 11), (inside.pids[2], 2, 7), (outside.pid, outside.pid, 3)}
    ours = {pid for pid, _, _ in want}
    equal({(row["pid"], row.get("ns_pid", row["pid"]), row["launches"]) for row in rows.stop().rows
           if row["pid"] in ours}, want, "rows")
    of_event = [(event["pid"], event.get("ns_pid", event["pid"])) for event in events.stop().events]
    equal({(*ids, of_event.count(ids)) for ids in of_event if ids[0] in ours}, want, "events")


@case(alone=True)
def owner_in_the_table():
    """-X shows the owner and the pid in the container."""
    host, name = HostRoot(), Name()
    host.kubelet(name)
    inside = contained(kubepods(name))
    tools = [traced(host, "--by", "pid", "-X", json=False), traced(host, "-e", "-X", json=False)]
    launches_of(inside)
    for tool in tools:
        line = next(line for line in tool.stop().lines if str(inside.pid) in line.split())
        check(name.container[:10] in line or name.pod[:10] in line, f"no owner: {line}")
        check(" 1 " in line, f"no pid in the container: {line}")


@case(each={"cgroupfs": kubepods_cgroupfs, "systemd_names": kubepods}, asan=True, alone=True)
def a_container_of_runc(path):
    """A container of runc, with all namespaces, in all hierarchies, and a process that runc exec starts in it."""
    host, name = HostRoot(), Name()
    host.kubelet(name)
    inside = RuncContainer("launch vecadd 1009; threads 2; launch saxpy 5; end; wait {dir}/end", path=path(name))
    later = inside.execute("launch vecadd 503")
    neighbour = RuncContainer("launch vecadd 77", path=path(Name()), image=inside.image)
    tools = [traced(host, "--by", "container"), traced(host, "-c", name.id[:16], "--by", "container"),
             traced(host, "-c", f"pod:{name.namespace}/{name.pod}", "--by", "container", "-l"),
             Tool("-c", hierarchies()["v2"] + inside.path, "--by", "container")]
    of_pid = traced(host, "-p", inside.pid, "--by", "pid")
    inside.go()
    later.go().wait()
    (harness.here / "end").touch()
    count = launched(inside.truth()) + launched(later.truth())
    launches_of(neighbour)
    for tool in tools:
        row = only_row((tool.stop() if tool.process.poll() is None else tool.finish()).rows, container_id=name.id)
        equal(row["launches"], count, f"launches of {tool}")
        if tool is not tools[-1]:
            same_owner(row | {"runtime": "any"}, **name.labels, cgroup=inside.path, runtime="any")
    for tool in tools[1:]:
        equal(set(totals(tool.rows, "container_id")), {(name.id,)}, f"containers of {tool}")
    row = only_row(of_pid.finish().rows, pid=inside.pid)
    equal((row["ns_pid"], row["launches"]), (1, 1019), "the first process")


# --- containers and processes that ended -----------------------------------------------------------------------------

@case(each={"v2": "v2", "memory": "memory"}, alone=True)
def ended_before_the_report(hierarchy):
    """The row of a process still names its container, even if the process exited and its cgroup was removed before the
    report. The same holds for a process that started later, with a library already known from another container of the
    image."""
    host, image, names = HostRoot(), Image(), [Name(), Name()]
    for name in names:
        host.kubelet(name)
    groups = [Cgroup(hierarchy, kubepods(name)) for name in names]
    known = Container("launch vecadd 1009", cgroups=[groups[0]], image=image)
    resident = Container("wait {dir}/end", image=image)
    tools = [traced(host, "--by", by) for by in ("container", "pid,kernel")]
    short = Container("name short; launch vecadd 503", cgroups=[groups[1]], image=image, warm=False, start=False)
    pids = [known.pid, None]
    counts = launches_of(known, short)
    for group in groups:
        group.remove()
        check(not group.exists(), "the cgroup still exists")
    for tool in tools:
        tool.stop()
    for i, (name, group) in enumerate(zip(names, groups)):
        row = only_row(tools[0].rows, container_id=name.id)
        same_owner(row, **name.labels, runtime="containerd", cgroup=group.inside)
        equal(row["launches"], counts[i], "launches")
        row = only_row([row for row in tools[1].rows if row.get("launches")], container_id=name.id)
        same_owner(row, **name.labels, runtime="containerd", cgroup=group.inside)
        equal((row["comm"], row["pid"] if pids[i] else None, row.get("ns_pid")),
              (("workload", "short")[i], pids[i], 1), "process")
    (harness.here / "end").touch()
    resident.go().wait()


def started_as(pid, text):
    """A workload with this pid: sets ns_last_pid and retries if another process gets the pid first."""
    last = "/proc/sys/kernel/ns_last_pid"
    if not os.access(last, os.W_OK):
        raise Skip(f"{last} is not writable")
    for _ in range(200):
        def exit_if_pid_differs():
            if os.getpid() != pid:
                os._exit(77)
        with open(last, "w") as file:
            file.write(str(pid - 1))
        workload = Workload(text, warm=False, preexec=exit_if_pid_differs)
        if workload.pid == pid:
            return workload
        workload.process.wait()
    raise Skip(f"pid {pid} was not available")


@case(alone=True)
def reused_pid():
    """Two processes with the same pid have separate rows with different start times."""
    first = Workload("name first; launch vecadd 1009")
    rows, events = Tool("--by", "pid"), Tool("-e")
    launches_of(first)
    second = started_as(first.pid, "name second; launch vecadd 503")
    launches_of(second)
    mine = sorted((row for row in rows.stop().rows if row["pid"] == first.pid), key=lambda row: row["process_start_ns"])
    equal([(row["comm"], row["launches"]) for row in mine], [("first", 1009), ("second", 503)], "rows")
    check(mine[0]["process_start_ns"] < mine[1]["process_start_ns"], f"unexpected start times: {mine}")
    equal({row["processes"] for row in mine}, {1}, "processes of each row")
    lines = [event["comm"] for event in events.stop().events if event["pid"] == first.pid]
    equal((lines.count("first"), lines.count("second")), (1009, 503), "lines")


@case(alone=True)
def process_one_of_two_containers():
    """Two processes have the same pid in their containers, and different ones on the host."""
    inside = [contained(kubepods(Name()), f"launch vecadd {count}") for count in (11, 13)]
    tool = Tool("--by", "pid")
    launches_of(*inside)
    tool.stop()
    for workload, count in zip(inside, (11, 13)):
        row = only_row(tool.rows, pid=workload.pid)
        equal((row["ns_pid"], row["launches"]), (1, count), "row")
