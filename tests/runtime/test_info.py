# SPDX-License-Identifier: Apache-2.0
"""--info reports what the machine supports and what the tool uses. The reference is the kernel's data about a run."""
import json
import os
import platform
import re

import harness
import leftovers
import system
from harness import Skip, case, check, equal
from programs import Tool, Workload, copy_for_all
from test_budget import tools, verified

truth_of_verifier = [int(n) for n in re.findall(r"\d+", os.uname().release)[:2]] >= [5, 16]


def info(*arguments, as_json=True, code=0):
    tool = Tool(*arguments, "--info", *(["--json"] if as_json else []), json=False, banner=False, attaches=False).finish(code)
    return json.loads(tool.text) if as_json and code == 0 else tool


def attached(pid, tier):
    """True if a run attaches in this way."""
    tool = Tool("-p", pid, "--attach", tier, "-d", "0.1", banner=False, losses=True)
    return tool.process.wait(120 * harness.patience) == 0 and tool.of_type("attached")[-1]["functions"] > 0


def figures():
    """Reports the same maps and programs as the kernel lists for a run with the same options."""
    report = info("-p", os.getpid())
    tool = Tool("-p", os.getpid(), losses=True)
    mine = leftovers.ids_held(tool.pid, "map_id")
    maps = sorted((m.get("name", ""), m["bytes_key"], m["bytes_value"], m["max_entries"], m["bytes_memlock"])
                  for m in leftovers.show("map") if m["id"] in mine)
    programs = sorted(verified(tool.pid)) if truth_of_verifier else []
    tool.stop()
    reported = sorted((m["name"][:15], m["key_bytes"], m["value_bytes"], m["entries"], m["bytes"])
                      for m in report["maps"])
    # Names with a dot are libbpf's. A run may hold more maps: those of BPF programs that only detect kernel features.
    check(len(reported) >= 5 and not set(one for one in reported if "." not in one[0]) - set(maps),
          f"wrong maps: reported {reported}, the kernel has {maps}")
    equal(report["map_bytes"], sum(m["bytes"] for m in report["maps"]), "bytes of all maps")
    if truth_of_verifier:
        reported = {(p["name"][:15], p["verified"]) for p in report["programs"]}
        check(reported and not reported - set(programs), f"wrong programs: reported {reported}, the kernel has {programs}")
        equal(report["verified"], sum(p["verified"] for p in report["programs"]), "instructions of all programs")
    equal((report["type"], report["tool"], report["kernel"], report["machine"]),
          ("info", harness.binary.name, os.uname().release, platform.machine()), "tool, kernel and machine")
    check(report["capabilities"]["CAP_SYS_ADMIN"], "the report lacks CAP_SYS_ADMIN, which root has")
    check(3 <= report["descriptors"]["open"] < report["descriptors"]["limit"], f"unexpected descriptors: {report['descriptors']}")
    check(report["nvml"]["available"] or report["nvml"]["why"], "NVML is unavailable, and no reason is given")
    equal(info("-p", os.getpid(), as_json=False).text.count("\nBPF MAP "), 1, "table of maps in the text")


for name in tools:
    def run():
        figures()
    run.__module__, run.__name__ = "test_info", name
    case(run, tool=name, timeout=180)


@case(alone=True, timeout=180)
def ways_of_attaching():
    """A way of attaching is reported as working if and only if a run can use it."""
    workload = Workload("launch vecadd 3")
    report = info("-p", workload.pid)
    equal([way["name"] for way in report["ways"]], ["session", "multi", "tracefs", "perf"], "ways")
    for way in report["ways"]:
        equal(way["works"], attached(workload.pid, way["name"]), f"{way['name']} works")
        equal("why" in way, not way["works"], f"{way['name']} has a reason")
    equal(report["way"], next(way["name"] for way in report["ways"] if way["works"]), "the way that a run chooses")


@case(alone=True)
def requested_way():
    """--info reports the way given by --attach, and leaves nothing behind."""
    for tier in "tracefs", "perf":
        try:
            system.need_tier(tier)
        except Skip:
            continue
        equal(info("-p", os.getpid(), "--attach", tier)["way"], tier, "the requested way")


@case
def files_that_would_be_probed():
    """The number of functions equals that of a run, and --info itself attaches no probes."""
    workload = Workload("launch vecadd 3")
    report = info("-p", workload.pid)
    tool = Tool("-p", workload.pid)
    record = tool.of_type("attached")[-1]
    equal((report["functions"], len(report["files"])), (record["functions"], record["files"]), "functions and files")
    check(any("libcuda.so" in file["path"] for file in report["files"]), f"no libcuda.so among the files: {report['files']}")
    workload.go()
    tool.finish()


@case(each={"size": ("--table-rows", 64), "stacks": ("-U",), "ring": ("--ring-mb", 2)})
def sizes_follow_options(options):
    maps = {m["name"]: m for m in info("-p", os.getpid(), *options)["maps"]}
    usual = {m["name"]: m for m in info("-p", os.getpid())["maps"]}
    name, entries = {"--table-rows": ("calls", 64), "-U": ("stacks", 16384), "--ring-mb": ("ring", 2 << 20)}[options[0]]
    equal(maps[name]["entries"], entries, f"entries of {name}")
    check(maps[name]["bytes"] != usual[name]["bytes"], f"unchanged bytes of {name}")


@case(each={"info": "--info", "clean": "--clean"})
def needs_root(option):
    """Like a run, the option reports that root is needed."""
    harness.binary = copy_for_all(harness.binary)
    tool = Tool(option, json=False, banner=False, attaches=False, preexec=lambda: os.setuid(65534)).finish(1)
    check("root" in tool.error and not tool.text, f"no mention of root: {tool.error}")
