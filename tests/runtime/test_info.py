# SPDX-License-Identifier: Apache-2.0
"""--info says what the machine offers and what the tool takes: as the kernel says it of a run, and of each way of
attaching."""
import json
import os
import platform
import re

import harness
import leftovers
import system
from harness import Skip, case, check, equal
from programs import Tool, Workload
from test_budget import tools, verified

truth_of_verifier = [int(n) for n in re.findall(r"\d+", os.uname().release)[:2]] >= [5, 16]


def ask(*arguments, as_json=True, code=0):
    tool = Tool(*arguments, "--info", *(["--json"] if as_json else []), json=False, banner=False, attaches=False).finish(code)
    return json.loads(tool.text) if as_json and code == 0 else tool


def attached(pid, tier):
    """Whether a run with this way of attaching begins."""
    tool = Tool("-p", pid, "--attach", tier, "-d", "0.1", banner=False, losses=True)
    return tool.process.wait(120 * harness.patience) == 0 and tool.of_type("attached")[-1]["functions"] > 0


def figures():
    """Maps and programs as the kernel has them for a run with the same options."""
    said = ask("-p", os.getpid())
    tool = Tool("-p", os.getpid(), losses=True)
    mine = leftovers.ids_held(tool.pid, "map_id")
    maps = sorted((m.get("name", ""), m["bytes_key"], m["bytes_value"], m["max_entries"], m["bytes_memlock"])
                  for m in leftovers.show("map") if m["id"] in mine)
    programs = sorted(verified(tool.pid)) if truth_of_verifier else []
    tool.stop()
    told = sorted((m["name"][:15], m["key_bytes"], m["value_bytes"], m["entries"], m["bytes"]) for m in said["maps"])
    # The tool's own; a run may hold others for what it tries, and libbpf's have names of their own.
    check(len(told) >= 5 and not set(one for one in told if "." not in one[0]) - set(maps), f"maps: {told}, and there are {maps}")
    equal(said["map_bytes"], sum(m["bytes"] for m in said["maps"]), "bytes of all maps")
    if truth_of_verifier:
        told = {(p["name"][:15], p["verified"]) for p in said["programs"]}
        check(told and not told - set(programs), f"programs: {told}, and there are {programs}")
        equal(said["verified"], sum(p["verified"] for p in said["programs"]), "of all programs")
    equal((said["type"], said["tool"], said["kernel"], said["machine"]),
          ("info", harness.binary.name, os.uname().release, platform.machine()), "who and where")
    check(said["capabilities"]["CAP_SYS_ADMIN"], "root may do everything")
    check(3 <= said["descriptors"]["open"] < said["descriptors"]["limit"], f"descriptors: {said['descriptors']}")
    check(said["nvml"]["available"] or said["nvml"]["why"], "NVML is there, or it says why not")
    equal(ask("-p", os.getpid(), as_json=False).text.count("\nBPF MAP "), 1, "the text has them, too")


for name in tools:
    def run():
        figures()
    run.__module__, run.__name__ = "test_info", name
    case(run, tool=name, timeout=180)


@case(alone=True, timeout=180)
def ways_of_attaching():
    """What it says of each is what happens to a run that is told to use it."""
    workload = Workload("launch vecadd 3")
    said = ask("-p", workload.pid)
    equal([way["name"] for way in said["ways"]], ["session", "multi", "tracefs", "perf"], "ways")
    for way in said["ways"]:
        equal(way["works"], attached(workload.pid, way["name"]), f"{way['name']} works")
        equal("why" in way, not way["works"], f"{way['name']} has a reason")
    equal(said["way"], next(way["name"] for way in said["ways"] if way["works"]), "the best")


@case(alone=True)
def another_way():
    """A run that is told to use one; and nothing of what was tried is left."""
    for tier in "tracefs", "perf":
        try:
            system.need_tier(tier)
        except Skip:
            continue
        equal(ask("-p", os.getpid(), "--attach", tier)["way"], tier, "the way that was asked for")


@case
def files_that_would_be_probed():
    """As many functions as a run attaches, and no call is slower for it."""
    workload = Workload("launch vecadd 3")
    said = ask("-p", workload.pid)
    tool = Tool("-p", workload.pid)
    record = tool.of_type("attached")[-1]
    equal((said["functions"], len(said["files"])), (record["functions"], record["files"]), "functions and files")
    check(any("libcuda.so" in file["path"] for file in said["files"]), f"files: {said['files']}")
    workload.go()
    tool.finish()


@case(each={"size": ("--table-rows", 64), "stacks": ("-U",), "ring": ("--ring-mb", 2)})
def options_count(options):
    """Sizes are those of the options given."""
    maps = {m["name"]: m for m in ask("-p", os.getpid(), *options)["maps"]}
    usual = {m["name"]: m for m in ask("-p", os.getpid())["maps"]}
    name, entries = {"--table-rows": ("calls", 64), "-U": ("stacks", 16384), "--ring-mb": ("ring", 2 << 20)}[options[0]]
    equal(maps[name]["entries"], entries, f"entries of {name}")
    check(maps[name]["bytes"] != usual[name]["bytes"], f"bytes of {name}")


@case(each={"info": "--info", "clean": "--clean"})
def needs_root(option):
    """A sentence, as for a run."""
    tool = Tool(option, json=False, banner=False, attaches=False, preexec=lambda: os.setuid(65534)).finish(1)
    check("root" in tool.error and not tool.text, f"it says {tool.error}")
