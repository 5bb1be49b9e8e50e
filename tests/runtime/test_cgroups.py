# SPDX-License-Identifier: Apache-2.0
"""-c: who is in a cgroup is counted, wherever its hierarchy is mounted and however it came there, and nobody else."""
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
    """A path that nobody has."""
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
    """Exactly this, by process, and no row of anybody else."""
    equal(pids(tool), {call["pid"] for call in truth}, f"processes of {tool}")
    same_counts(tool, truth, by=("pid", "kernel"), **options)


kinds = {"v2": "v2", "memory": "memory", "pids": "pids", "cpu": "cpu"}


@case(each=kinds, asan=True)
def members_and_nobody_else(hierarchy):
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
    # The hierarchy that v1 is read from need not be the one that -c names.
    if hierarchy in ("v2", "memory"):
        equal({event.get("cgroup") for event in tool.events}, {group.inside}, "cgroups")


@case
def ways_to_say_it():
    """A path, a path below a mount, with and without slashes, and a container's id or how it begins."""
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
    """It has no controller; its cgroups have namesakes that have one."""
    path = fresh("/trainer.service")
    named, of_memory = Cgroup("name=systemd", path), Cgroup("memory", path)
    inside = Workload(script, preexec=lambda: (named.join(), of_memory.join()))
    tool = Tool("-c", named.path, "--by", "pid,kernel")
    only_truth = truth_of(inside)
    only(tool.stop(), only_truth)
    alone = Cgroup("name=systemd", fresh())
    refused(["-c", alone.path], 1, alone.path)


@case(each={tier: tier for tier in ("session", "multi", "tracefs", "perf")}, long=["perf"], alone=True)
def neighbours_are_not_trapped(tier):
    """They hit no breakpoint and run no BPF program, nor do their children."""
    group = Cgroup("v2", fresh())
    bystanders.check_others_hit_no_probes(tier, lambda target: ("-c", group.path), Tool.stop, preexec=group.join)


@case(each={"v2": "v2", "memory": "memory"})
def descendants(hierarchy):
    """What is below belongs to it; what only begins with the same letters, and what is above, does not."""
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


# --- members come and go ---------------------------------------------------------------------------------------------

@case(each={"v2": "v2", "memory": "memory"})
def nobody_is_in_it_yet(hierarchy):
    """The first member starts under the tool's eyes, with its library unknown until then."""
    group = Cgroup(hierarchy, fresh())
    tool = Tool("-c", group.path, "--by", "pid,kernel")
    first = member(group)
    probed(tool, first.pid)
    second = member(group)
    probed(tool, second.pid)
    truth = truth_of(first, second)
    only(tool.stop(), truth, but=opening)


@case
def joining_by_fork():
    group = Cgroup("v2", fresh())
    parent = member(group, "launch vecadd 11; fork; touch {dir}/child; wait {dir}/run; launch vecadd 7; end")
    tool = Tool("-c", group.path, "--by", "pid,kernel")
    parent.go()
    wait_until((harness.here / "child").exists, "the child runs")
    probed(tool, *system.descendants(parent.pid))
    (harness.here / "run").touch()
    truth = parent.truth()
    only(tool.stop(), truth)
    equal(len(pids(tool)), 2, "processes")


@case
def joining_by_exec():
    """A member becomes another program, with another runtime. Its first launch opens the libraries."""
    group = Cgroup("v2", fresh())
    workload = member(group, "launch vecadd 19; exec workload13; launch scale 1; touch {dir}/there; wait {dir}/run\n"
                             "launch vecadd 23; end")
    tool = Tool("-c", group.path, "--by", "pid,kernel")
    workload.go()
    wait_until((harness.here / "there").exists, "the other program runs")
    probed(tool, workload.pid)
    (harness.here / "run").touch()
    truth = workload.truth()
    same_counts(tool.stop(), truth, by=("pid", "kernel"), but=opening)
    equal(pids(tool), {workload.pid}, "processes")


@case(each={"v2": "v2", "memory": "memory"})
def joining_by_being_moved(hierarchy):
    """What it did outside does not count, what it does inside does."""
    group = Cgroup(hierarchy, fresh())
    resident = member(group)
    guest = Workload("launch vecadd 1009; touch {dir}/outside; wait {dir}/moved; launch saxpy 503")
    tool = Tool("-c", group.path, "--by", "pid,kernel")
    guest.go()
    wait_until((harness.here / "outside").exists, "the guest has launched outside")
    group.add(guest.pid)
    probed(tool, guest.pid)
    (harness.here / "moved").touch()
    truth = [call for call in guest.truth() if call["demangled"].startswith("saxpy")] + truth_of(resident)
    only(tool.stop(), truth)


@case(each={"v2": ("v2", "session"), "memory": ("memory", "session"), "multi": ("v2", "multi"),
            "tracefs": ("memory", "tracefs"), "perf": ("v2", "perf")}, alone=True, long=["perf"])
def thirty_members(chosen):
    """More than are attached one by one: the kernel side tells them apart from the neighbours."""
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
    """The first two launch all the while: nothing is lost and nothing counted twice as the probes are exchanged."""
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
        only(tool.stop(), truth, errors=errors, but=opening)


@case(each={"v2": "v2", "memory": "memory"})
def a_cgroup_that_vanishes(hierarchy):
    """It is the end of the run, with a report; as the end of the last process of -p."""
    group = Cgroup(hierarchy, fresh("/inner"))
    inside = member(group)
    tools = [Tool("-c", group.path, "--by", "pid,kernel"), Tool("-c", group.path, json=False)]
    truth = truth_of(inside)
    group.remove()
    only(tools[0].finish(), truth)
    check("vecadd" in tools[1].finish().text, f"the table: {tools[1].text}")


@case
def a_cgroup_of_the_same_name():
    """It is another one: the run is about the one that was there first."""
    group = Cgroup("v2", fresh())
    tool = Tool("-c", group.path, "--by", "pid,kernel", "-d", "60")
    inside = member(group, "launch vecadd 11")
    probed(tool, inside.pid)
    truth = truth_of(inside)
    group.remove()
    again = Cgroup("v2", group.inside)
    truth_of(member(again))
    only(tool.finish(), truth, but=opening)


# --- many ------------------------------------------------------------------------------------------------------------

def chain(counts):
    """Each process is the child of the one before. When all are there, and {dir}/run, they launch."""
    return ("launch scale 1; " + "fork\n" * len(counts) + "touch {dir}/all; wait {dir}/run\n"
            + "".join(f"launch vecadd {count}; end\n" for count in counts))


def innermost(pid):
    wait_until((harness.here / "all").exists, "all processes are there")
    return max(system.descendants(pid))


@case(each={"cgroup": True, "machine": False}, timeout=240, alone=True, long=["machine"])
def five_hundred_processes(inside):
    """Each with its own number of launches."""
    group = Cgroup("v2", fresh())
    parent = member(group, chain(range(1, 501)))
    tool = Tool(*(["-c", group.path] if inside else []), "--by", "pid,kernel", "--table-rows", "16384")
    parent.go()
    last = innermost(parent.pid)
    probed(tool, last)
    (harness.here / "run").touch()
    truth = parent.truth()
    equal(len({call["pid"] for call in truth}), 501, "processes in the truth")
    same_counts(tool.stop(), truth, by=("pid", "kernel"))


@case(timeout=240, alone=True)
def five_hundred_short_ones():
    """One after the other, each gone before the next: the rows are there at the end, with the name and the cgroup."""
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
def names_that_hurt(hierarchy):
    """Whatever bytes they are, text stays text and each line stays an object."""
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
    """Readers differ in how many characters stand for bytes that are none."""
    return re.sub("\ufffd+", "\ufffd", text)


@case
def asking_for_names_that_hurt():
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
    """The row has the path, or the beginning of it where that is too long to keep, with three dots; and -c of the outermost
    one has whoever is that deep in it."""
    group = Cgroup("v2", nested(*shape))
    inside = member(group, "launch vecadd 1009; fork; touch {dir}/child; wait {dir}/run; launch saxpy 5; end",
                    "workload-driver")
    tool, labels = Tool("-c", f"{group.mount}/{group.names[0]}", "--by", "pid,kernel"), Tool("--by", "pid,cgroup")
    table = Tool("--by", "pid,cgroup", json=False)
    inside.go()
    wait_until((harness.here / "child").exists, "the child runs")
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
        check(path.endswith("/...") and whole.startswith(path[:-3]), f"the cgroup is {path}")


@case
def many_members_that_are_deep():
    """The same where the kernel side has to find the way up."""
    group = Cgroup("v2", nested(60, 8))
    inside = member(group, chain(range(100, 140)), "workload-driver")
    inside.go()
    innermost(inside.pid)
    tool = Tool("-c", f"{group.mount}/{group.names[0]}", "--by", "pid,kernel")
    (harness.here / "run").touch()
    truth = [call for call in inside.truth() if call["demangled"] != opening]
    only(tool.stop(), truth)


# --- what is refused -------------------------------------------------------------------------------------------------

wrong = {
    "nothing_there": (["-c", "/sys/fs/cgroup/no/such/cgroup"], 1, "no/such/cgroup"),
    "no_such_name": (["-c", "no-such-cgroup-here"], 1, "no-such-cgroup-here"),
    "no_cgroup": (["-c", "/etc"], 1, "/etc"), "a_file": (["-c", "/etc/passwd"], 1, "/etc/passwd"),
    "outside": (["-c", "../../../etc"], 1, "../../../etc"), "no_such_id": (["-c", "deadbeef0123"], 1, "deadbeef0123"),
    "unknown_pod": (["-c", "pod:nowhere/nobody"], 1, "nobody", "nowhere"),
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
def a_sentence_about_such_a_name():
    for text in "/\x1b[2J\x1b[31m", "\udcff\udcfe\x9b", "pod:\x1b[2J/\x1b]0;x\x07", "\u202e":
        tool = Tool("-c", text, json=False, banner=False)
        tool.finish(1)
        no_control_bytes(tool)


@case
def a_file_of_a_cgroup():
    """It is no cgroup, though it is in one."""
    group = Cgroup("v2", fresh())
    refused(["-c", group.procs], 1, group.procs)


@case
def an_ambiguous_id():
    """The sentence names both."""
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
def a_cgroup_that_has_gone():
    group = Cgroup("v2", fresh())
    group.remove()
    refused(["-c", group.path], 1, group.path)
