# SPDX-License-Identifier: Apache-2.0
"""-c counts exactly the members of a cgroup, in each hierarchy, whichever way they joined."""
import os
import re
import secrets

import bystanders
import harness
import leftovers
import system
from containers import Cgroup, Name, hierarchies, kubepods, own
from harness import case, check, equal, wait_until
from programs import Tool, Workload
from test_hostile import as_json_shows, no_control_bytes, no_control_bytes_in_json
from test_refusals import refused
from truth import launched, opening, same_counts

script = "launch vecadd 1009; threads 3; launch saxpy 101; end"


def fresh(tail=""):
    """An unused path of a cgroup."""
    return f"{own}{secrets.token_hex(4)}{tail}"


def member(group, text=script, form="workload", **options):
    return Workload(text, form, preexec=group.join, **options)


def truth_of(*workloads):
    for workload in workloads:
        workload.go()
    return [call for workload in workloads for call in workload.truth()]


def pids(tool):
    return {row["pid"] for row in tool.rows}


def probed(tool, *pids):
    for pid in pids:
        wait_until(lambda: leftovers.launches_probed(tool.pid, pid), f"process {pid} is traced")


def only(tool, truth, **options):
    """Checks that rows by process equal the truth, without rows of other processes."""
    equal(pids(tool), {call["pid"] for call in truth}, f"processes of {tool}")
    same_counts(tool, truth, by=("pid", "kernel"), **options)


kinds = {"v2": "v2", "memory": "memory", "pids": "pids", "cpu": "cpu"}


@case(each=kinds, asan=True)
def members_only(hierarchy):
    group = Cgroup(hierarchy, fresh())
    a, b, neighbour = member(group), member(group, form="workload13"), Workload(script)
    tools = [Tool("-c", group.path, "--by", "pid,kernel"),
             Tool("-c", group.path, "--by", "pid,kernel", "-l", "--api", "both")]
    truth = truth_of(a, b)
    truth_of(neighbour)
    only(tools[0].stop(), truth)
    only(tools[1].stop(), truth, api="both", errors=True)


@case(each=kinds)
def events_of_members(hierarchy):
    group = Cgroup(hierarchy, fresh())
    inside, neighbour = member(group), Workload(script)
    tool = Tool("-c", group.path, "-e")
    truth = truth_of(inside)
    truth_of(neighbour)
    tool.stop()
    equal({event["pid"] for event in tool.events}, {inside.pid}, "processes")
    equal(len(tool.events), launched(truth), "lines")
    # With v1, cgroup names may come from another hierarchy than the one that -c names.
    if hierarchy in ("v2", "memory"):
        equal({event.get("cgroup") for event in tool.events}, {group.inside}, "cgroups")


@case
def forms_of_the_argument():
    """-c accepts a full path, a path below the mount (with or without a leading slash), a container's id, or a prefix
    of the id."""
    name = Name()
    group = Cgroup("v2", fresh("/" + kubepods(name)))
    inside, neighbour = member(group), Workload(script)
    ways = [group.path, group.path + "/", group.path.replace("/cri-", "//./cri-"), group.inside, group.inside[1:],
            name.id, name.id[:12]]
    link = harness.here / "link"
    link.symlink_to(group.path)
    tools = [Tool("-c", way, "--by", "pid,kernel") for way in [*ways, link]]
    truth = truth_of(inside)
    truth_of(neighbour)
    for tool in tools:
        only(tool.stop(), truth)


@case
def the_hierarchy_of_systemd():
    """systemd's v1 hierarchy has no controller. Its cgroups have the same names as those of the memory hierarchy."""
    path = fresh("/trainer.service")
    named, of_memory = Cgroup("name=systemd", path), Cgroup("memory", path)
    inside = Workload(script, preexec=lambda: (named.join(), of_memory.join()))
    tool = Tool("-c", named.path, "--by", "pid,kernel")
    only_truth = truth_of(inside)
    only(tool.stop(), only_truth)
    alone = Cgroup("name=systemd", fresh())
    refused(["-c", alone.path], 1, alone.path)


@case(each={tier: tier for tier in ("session", "multi", "tracefs", "perf")}, long=["perf"], alone=True)
def other_processes_hit_no_probes(tier):
    """Processes outside the cgroup, and their children, hit no breakpoint and run no BPF program."""
    group = Cgroup("v2", fresh())
    bystanders.check_others_hit_no_probes(tier, lambda target: ("-c", group.path), Tool.stop, preexec=group.join)


@case(each={"v2": "v2", "memory": "memory"})
def descendants(hierarchy):
    """-c includes the cgroups below the given one, but not its parent, nor a sibling whose name has the same prefix."""
    top = fresh()
    paths = [top, f"{top}/a", f"{top}/a/b", f"{top}/a/b/c/d/e", f"{top}/other"]
    inside = [member(Cgroup(hierarchy, path)) for path in paths]
    outside = member(Cgroup(hierarchy, top + "-and-more"))
    tools = {path: Tool("-c", hierarchies()[hierarchy] + "/" + path, "--by", "pid,kernel") for path in paths}
    by_path = {path: truth_of(workload) for path, workload in zip(paths, inside)}
    truth_of(outside)
    for path, tool in tools.items():
        only(tool.stop(), [call for where in paths if where == path or where.startswith(path + "/")
                           for call in by_path[where]])


# --- members join and leave ------------------------------------------------------------------------------------------

@case(each={"v2": "v2", "memory": "memory"})
def empty_cgroup(hierarchy):
    """The first member joins while the tool runs, and uses a library that the tool does not know yet."""
    group = Cgroup(hierarchy, fresh())
    tool = Tool("-c", group.path, "--by", "pid,kernel")
    first = member(group)
    probed(tool, first.pid)
    second = member(group)
    probed(tool, second.pid)
    truth = truth_of(first, second)
    only(tool.stop(), truth, ignore=opening)


@case
def joining_by_fork():
    group = Cgroup("v2", fresh())
    parent = member(group, "launch vecadd 11; fork; touch {dir}/child; wait {dir}/run; launch vecadd 7; end")
    tool = Tool("-c", group.path, "--by", "pid,kernel")
    parent.go()
    wait_until((harness.here / "child").exists, "the child has started")
    probed(tool, *system.descendants(parent.pid))
    (harness.here / "run").touch()
    truth = parent.truth()
    only(tool.stop(), truth)
    equal(len(pids(tool)), 2, "number of processes")


@case
def joining_by_exec():
    """A member execs another program with another runtime, which opens its libraries at the first launch."""
    group = Cgroup("v2", fresh())
    workload = member(group, "launch vecadd 19; exec workload13; launch scale 1; touch {dir}/there; wait {dir}/run\n"
                             "launch vecadd 23; end")
    tool = Tool("-c", group.path, "--by", "pid,kernel")
    workload.go()
    wait_until((harness.here / "there").exists, "the other program has started")
    probed(tool, workload.pid)
    (harness.here / "run").touch()
    truth = workload.truth()
    same_counts(tool.stop(), truth, by=("pid", "kernel"), ignore=opening)
    equal(pids(tool), {workload.pid}, "processes")


@case(each={"v2": "v2", "memory": "memory"})
def joining_by_being_moved(hierarchy):
    """Calls before a process is moved into the cgroup do not count; later ones do."""
    group = Cgroup(hierarchy, fresh())
    resident = member(group)
    guest = Workload("launch vecadd 1009; touch {dir}/outside; wait {dir}/moved; launch saxpy 503")
    tool = Tool("-c", group.path, "--by", "pid,kernel")
    guest.go()
    wait_until((harness.here / "outside").exists, "the guest has launched kernels outside the cgroup")
    group.add(guest.pid)
    probed(tool, guest.pid)
    (harness.here / "moved").touch()
    truth = [call for call in guest.truth() if call["demangled"].startswith("saxpy")] + truth_of(resident)
    only(tool.stop(), truth)


@case(each={"v2": ("v2", "session"), "memory": ("memory", "session"), "multi": ("v2", "multi"),
            "tracefs": ("memory", "tracefs"), "perf": ("v2", "perf")}, alone=True, long=["perf"])
def thirty_members(chosen):
    """If a cgroup has more members than the tool probes one by one, the BPF programs filter by cgroup."""
    hierarchy, tier = chosen
    system.need_tier(tier)
    top = fresh()
    groups = [Cgroup(hierarchy, path) for path in (top, top + "/a", top + "/a/b")]
    inside = [member(groups[i % 3], f"launch vecadd {1000 + i}; threads 2; launch saxpy {10 + i}; end",
                     "workload-driver", start=False) for i in range(30)]
    outside = [Workload(script), member(Cgroup(hierarchy, top + "x"))]
    for workload in inside:
        workload.ready()
    tools = [Tool("-c", groups[0].path, "--by", "pid,kernel", "--attach", tier, *mode) for mode in ([], ["-l"])]
    truth = truth_of(*inside)
    truth_of(*outside)
    for tool, errors in zip(tools, (False, True)):
        only(tool.stop(), truth, errors=errors)


@case(each={"v2": "v2", "memory": "memory"}, timeout=180, alone=True)
def growing_from_two_to_thirty(hierarchy):
    """Two processes launch while others join; no launch is lost or counted twice when the probes are replaced."""
    group = Cgroup(hierarchy, fresh())
    first = [member(group, "repeat 1000000000; launch vecadd 100 gap_us=50; end", form)
             for form in ("workload", "workload-driver")]
    neighbour = Workload("forever; launch vecadd 100 gap_us=500; end")
    tools = [Tool("-c", group.path, "--by", "pid,kernel", *mode) for mode in ([], ["-l"])]
    for workload in [*first, neighbour]:
        workload.go()
    later = []
    for i in range(28):
        later.append(member(group, f"launch saxpy {100 + i}"))
        for tool in tools:
            probed(tool, later[-1].pid)
    truth = truth_of(*later)
    for workload in first:
        truth += workload.stop().truth()
    neighbour.stop()
    for tool, errors in zip(tools, (False, True)):
        only(tool.stop(), truth, errors=errors, ignore=opening)


@case(each={"v2": "v2", "memory": "memory"})
def removed_cgroup_ends_the_run(hierarchy):
    """The tool prints its report and exits when the cgroup is removed, as when the last process of -p exits."""
    group = Cgroup(hierarchy, fresh("/inner"))
    inside = member(group)
    tools = [Tool("-c", group.path, "--by", "pid,kernel"), Tool("-c", group.path, json=False)]
    truth = truth_of(inside)
    group.remove()
    only(tools[0].finish(), truth)
    check("vecadd" in tools[1].finish().text, f"the table has no vecadd: {tools[1].text}")


@case
def new_cgroup_of_the_same_name():
    """After the target is removed, a new cgroup with the same name is not traced."""
    group = Cgroup("v2", fresh())
    tool = Tool("-c", group.path, "--by", "pid,kernel", "-d", "60")
    inside = member(group, "launch vecadd 11")
    probed(tool, inside.pid)
    truth = truth_of(inside)
    group.remove()
    again = Cgroup("v2", group.inside)
    truth_of(member(again))
    only(tool.finish(), truth, ignore=opening)


# --- many processes --------------------------------------------------------------------------------------------------

def chain(counts):
    """Script in which each process is a child of the previous one. Each one launches once all of them and the file
    {dir}/run exist."""
    return ("launch scale 1; " + "fork\n" * len(counts) + "touch {dir}/all; wait {dir}/run\n"
            + "".join(f"launch vecadd {count}; end\n" for count in counts))


def innermost(pid):
    wait_until((harness.here / "all").exists, "all processes have started")
    return max(system.descendants(pid))


@case(each={"cgroup": True, "machine": False}, timeout=240, alone=True, long=["machine"])
def five_hundred_processes(inside):
    """Each process makes a different number of launches."""
    group = Cgroup("v2", fresh())
    parent = member(group, chain(range(1, 501)))
    tool = Tool(*(["-c", group.path] if inside else []), "--by", "pid,kernel", "--table-rows", "16384")
    parent.go()
    last = innermost(parent.pid)
    probed(tool, last)
    (harness.here / "run").touch()
    truth = parent.truth()
    equal(len({call["pid"] for call in truth}), 501, "number of processes in the truth")
    same_counts(tool.stop(), truth, by=("pid", "kernel"))


@case(timeout=240, alone=True)
def five_hundred_short_processes():
    """Processes that exit one after another still have rows with name and cgroup at the end."""
    group = Cgroup("v2", fresh())
    text = "".join(f"fork; name p{i}; launch vecadd {i}; end\n" for i in range(1, 501))
    parent = member(group, text)
    tool = Tool("--by", "pid,kernel,cgroup", "--table-rows", "16384")
    truth = truth_of(parent)
    group.remove()
    same_counts(tool.stop(), truth, by=("pid", "kernel"))
    rows = [row for row in tool.rows if row.get("cgroup") == group.inside]
    equal(sorted((row["comm"], row["launches"]) for row in rows), sorted((f"p{i}", i) for i in range(1, 501)), "names")


# --- hostile names ---------------------------------------------------------------------------------------------------

hostile = [b"\x1b[2J\x1b[31mred", b"\xff\xfe\x80\xc3", b"tab\tbell\x07cr\r", b'quote"back\\slash,\x7f',
           "\u202egpj\u2066.exe".encode(), b"%s%n{}{0}", b"\x9b31m", b" lead and trail ",
           b"n" * 255, b"\x1b" * 255, b"\xf0\x9f\x98" * 85]


def as_text(name):
    return name.decode("utf-8", "surrogateescape")


@case(each={"v2": "v2", "memory": "memory"}, asan=True, alone=True)
def hostile_names(hierarchy):
    """Cgroup names with any bytes are escaped in text, and JSON lines stay valid."""
    top = fresh()
    groups = [Cgroup(hierarchy, f"{top}/{as_text(name)}") for name in hostile]
    inside = [member(group, f"launch vecadd {100 + i}", "workload-driver", start=False)
              for i, group in enumerate(groups)]
    for workload in inside:
        workload.ready()
    tools = [Tool("--by", "cgroup,pid"), Tool("--by", "cgroup,pid", "-r", "0", json=False), Tool("-e"),
             Tool("-e", json=False), Tool("-H", "grid", "--by", "cgroup", json=False)]
    truth_of(*inside)
    for tool in tools:
        tool.stop()
        no_control_bytes_in_json(tool) if tool.json else no_control_bytes(tool)
    want = {workload.pid: (as_seen(group.inside), 100 + i) for i, (workload, group) in enumerate(zip(inside, groups))}
    equal({row["pid"]: (replaced(row["cgroup"]), row["launches"]) for row in tools[0].rows if row["pid"] in want}, want,
          "rows")
    equal({event["pid"]: replaced(event["cgroup"]) for event in tools[2].events if event["pid"] in want},
          {pid: path for pid, (path, _) in want.items()}, "events")


def as_seen(path):
    return replaced(as_json_shows(os.fsencode(path).decode("latin-1")))


def replaced(text):
    """Collapses replacement characters: decoders differ in how many they use for invalid bytes."""
    return re.sub("\ufffd+", "\ufffd", text)


@case
def asking_for_hostile_names():
    top = fresh()
    for name in hostile:
        group = Cgroup("v2", f"{top}/{as_text(name)}")
        inside = member(group, "launch vecadd 101", "workload-driver")
        tools = [Tool("-c", group.path, "--by", "pid,kernel"), Tool("-c", group.path, "-v", json=False)]
        truth = truth_of(inside)
        only(tools[0].stop(), truth)
        no_control_bytes(tools[1].stop())


def nested(levels, letters):
    return fresh() + "".join(f"/{i:02}" + "d" * (letters - 2) for i in range(levels))


@case(each={"longest_path": (15, 250), "deep": (60, 8), "beyond_all_paths": (40, 250)}, alone=True)
def deep_nesting(shape):
    """A row shows the path of the cgroup. If the path is too long, the row shows its beginning and "...". -c of the
    outermost cgroup includes processes at any depth."""
    group = Cgroup("v2", nested(*shape))
    inside = member(group, "launch vecadd 1009; fork; touch {dir}/child; wait {dir}/run; launch saxpy 5; end",
                    "workload-driver")
    tool, labels = Tool("-c", f"{group.mount}/{group.names[0]}", "--by", "pid,kernel"), Tool("--by", "pid,cgroup")
    table = Tool("--by", "pid,cgroup", json=False)
    inside.go()
    wait_until((harness.here / "child").exists, "the child has started")
    probed(tool, *system.descendants(inside.pid))
    (harness.here / "run").touch()
    truth = inside.truth()
    only(tool.stop(), truth)
    labels.stop()
    same_path(labels, inside.pid, group.inside)
    widest = max(len(line) for line in table.stop().lines)
    check(widest < 160, f"a line of the table has {widest} characters")


def same_path(tool, pid, whole):
    path, = {row.get("cgroup") for row in tool.rows if row["pid"] == pid}
    if path != whole:
        check(path.endswith("/...") and whole.startswith(path[:-3]), f"unexpected path of the cgroup: {path}")


@case
def many_deep_members():
    """With many deeply nested members, the BPF programs must find the outermost cgroup."""
    group = Cgroup("v2", nested(60, 8))
    inside = member(group, chain(range(100, 140)), "workload-driver")
    inside.go()
    innermost(inside.pid)
    tool = Tool("-c", f"{group.mount}/{group.names[0]}", "--by", "pid,kernel")
    (harness.here / "run").touch()
    truth = [call for call in inside.truth() if call["demangled"] != opening]
    only(tool.stop(), truth)


# --- rejected arguments ----------------------------------------------------------------------------------------------

wrong = {
    "nothing_there": (["-c", "/sys/fs/cgroup/no/such/cgroup"], 1, "no/such/cgroup"),
    "no_such_name": (["-c", "no-such-cgroup-here"], 1, "no-such-cgroup-here"),
    "no_cgroup": (["-c", "/etc"], 1, "/etc"), "a_file": (["-c", "/etc/passwd"], 1, "/etc/passwd"),
    "outside": (["-c", "../../../etc"], 1, "../../../etc"), "no_such_id": (["-c", "deadbeef0123"], 1, "deadbeef0123"),
    "unknown_pod": (["-c", "pod:nowhere/no-such-pod"], 1, "no-such-pod", "nowhere"),
    "empty": (["-c", ""], 2, "-c"), "missing": (["-c"], 2, "-c"),
    "pod_without_name": (["-c", "pod:only"], 2, "pod:NAMESPACE/NAME"),
    "pod_empty": (["-c", "pod:"], 2, "pod:NAMESPACE/NAME"),
    "pod_with_slashes": (["-c", "pod:a/b/c"], 2, "pod:NAMESPACE/NAME"), "too_short": (["-c", "abc"], 1, "abc"),
    "control_bytes": (["-c", "/\x1b[2J\x1b[31m"], 1, "cgroup"), "no_utf8": (["-c", "\udcff\udcfe"], 1, "cgroup"),
    "very_long": (["-c", "/" + "x" * 300], 1, "cgroup"), "a_line_end": (["-c", "a\nb"], 1, "cgroup"),
    "host_root_missing": (["--host-root"], 2, "--host-root"),
    "host_root_relative": (["--host-root", "some/where"], 2, "--host-root"),
    "host_root_empty": (["--host-root", ""], 2, "--host-root"), "by_words": (["--by", "containers"], 2, "container"),
}


@case(each=wrong, asan=True)
def wrong_arguments(row):
    arguments, code, *words = row
    refused(arguments, code, *words)


@case
def message_about_a_hostile_name():
    for text in "/\x1b[2J\x1b[31m", "\udcff\udcfe\x9b", "pod:\x1b[2J/\x1b]0;x\x07", "\u202e":
        tool = Tool("-c", text, json=False, banner=False)
        tool.finish(1)
        no_control_bytes(tool)


@case
def a_file_of_a_cgroup():
    """-c rejects the path of a file in a cgroup."""
    group = Cgroup("v2", fresh())
    refused(["-c", group.procs], 1, group.procs)


@case
def an_ambiguous_id():
    """The message names both candidates."""
    begin = secrets.token_hex(6)
    names = [Name(id=begin + secrets.token_hex(26)) for _ in range(2)]
    for name in names:
        Cgroup("v2", f"{fresh()}/docker-{name.id}.scope")
    refused(["-c", begin], 1, names[0].id, names[1].id)
    group = Cgroup("v2", f"{fresh()}/docker-{Name().id}.scope")
    inside = member(group)
    tool = Tool("-c", group.names[-1][7:27], "--by", "pid,kernel")
    only_this = truth_of(inside)
    only(tool.stop(), only_this)


@case
def a_removed_cgroup():
    group = Cgroup("v2", fresh())
    group.remove()
    refused(["-c", group.path], 1, group.path)
