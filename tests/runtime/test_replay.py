# SPDX-License-Identifier: Apache-2.0
"""--replay: a replay looks the same as the live run, in tables and on cudatop's screen, and needs no privileges."""
import gzip
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time

import harness
from containers import HostRoot, Image, Name, kubepods
from driver_calls import Calls
from harness import Skip, check, equal
from programs import Tool, Workload, copy_for_all, kill_at_end
from ranks import Ranks
from test_containers import contained, launches_of, traced
from test_driver_calls import at_calls, commands
from test_ncclwait import rank_2_is_late
from test_top_screen import Terminal
from tops import case

sys.path.append(str(harness.root / "tests/screen"))
import terminal  # noqa: E402


def recorded():
    """A recording of at least three intervals, the workload's pid, and the recorded rows per process."""
    file = harness.here / "recorded.json"
    workload = Workload("repeat 6; launch vecadd 100; copy 3; sleep 150; end", name="trainer")
    tool = Tool("-p", workload.pid, "-b", "0.3", "--nvml", "off", "--record", file, json=False, losses=True)
    workload.go().wait()
    tool.finish()
    rows = [row for row in map(json.loads, file.read_text().splitlines()) if row["type"] == "row" and row["by"] == "pid"]
    check(len({row["time"] for row in rows}) >= 3, f"too few intervals: {rows}")
    return file, workload.pid, rows


@case
def tables_and_screen():
    file, pid, rows = recorded()
    command = [copy_for_all(harness.binary), "--replay", file, "-b", "--columns", "PID,COMM,LAUNCH/s,COPY/s"]
    done = subprocess.run(command, text=True, capture_output=True, timeout=60, user=65534, group=65534, extra_groups=[])
    equal((done.returncode, done.stderr), (0, ""), "exit status for an ordinary user")
    lines = [line.split() for line in done.stdout.splitlines()]
    replayed_rows = [(int(line[0]), line[1], float(line[2]), float(line[3])) for line in lines if line and line[0].isdigit()]
    near = [(row["pid"], row["comm"], round(row["launches_per_second"], 1), round(row["copies_per_second"], 1)) for row in rows]
    equal(replayed_rows, near, "rows")

    if not terminal.available:
        raise Skip("there is no tmux")
    busiest = max(rows, key=lambda row: row["launches_per_second"])
    screen = Terminal([harness.binary, "--no-config", "--replay", file, "--at", busiest["time"]], 150, 30)
    harness.at_end.append(screen.stop)
    screen.wait_for("REPLAY")
    screen.keys("Space")
    screen.wait_for("stopped")
    count = len({row["time"] for row in rows})
    screen.keys(*["["] * count)  # back to the first report
    screen.wait_for(f"1/{count} stopped")
    screen.keys("Enter")
    screen.wait_for("Recorded fields")
    screen.keys("Escape")
    screen.wait_for("by pid")
    screen.keys("q")
    equal(screen.exit_status(), 0, f"exit status ({screen.text()})")


@case(alone=True)
def verdicts():
    """Each report has a table with verdicts below it, as in the live run."""
    file = harness.here / "recorded.json"
    workload = Workload("forever; alloc all 17179869184 result=2; launch vecadd 1; sleep 50; end", name="trainer")
    live = Tool("-p", workload.pid, "-b", "1", "3", "--nvml", "off", "--record", file, json=False, losses=True)
    workload.go()
    live.finish()
    again = replayed("cudatop", file, "-b")
    equal(again.stderr, "", "messages")
    diagnosed = lambda text: [line for line in text.splitlines() if re.match(r"!!|!  |\.  |  +PID COMM +DIAGNOSIS", line)]
    check("OUT_OF_MEMORY" in live.text, f"no verdict: {live.text}")
    equal(diagnosed(again.stdout), diagnosed(live.text), "verdicts")
    equal(len(tables(again.stdout)), len(tables(live.text)), f"tables: {again.stdout}")
    if not terminal.available:
        raise Skip("there is no tmux")
    reports = {json.loads(line)["time"] for line in file.read_text().splitlines() if json.loads(line)["type"] == "row"}
    with Terminal([harness.binary, "--no-config", "--replay", file], 150, 30) as screen:
        screen.wait_for("REPLAY")
        screen.keys("Space", *["["] * 9)
        for number in range(1, len(reports) + 1):
            screen.wait_for(f"{number}/{len(reports)} stopped")
            check("trainer" in screen.text() and "Nothing uses a GPU yet" not in screen.text(), f"unexpected rows: {screen.text()}")
            screen.keys("]")
        screen.keys("q")
        equal(screen.exit_status(), 0, f"exit status ({screen.text()})")


@case(alone=True)
def saved_screen_settings():
    """The screen of a recording uses the saved settings, and saves settings changed there."""
    if not terminal.available:
        raise Skip("there is no tmux")
    file, _, _ = recorded()
    kept = harness.here / "gpusnoop/cudatop.json"
    kept.parent.mkdir(mode=0o700)
    chosen = {"sort": "pid", "columns": ["pid", "copies_per_second"], "hidden_columns": ["comm"]}
    kept.write_text(json.dumps(chosen))
    for number in range(2):
        command = [harness.binary, "--replay", file]
        with Terminal(command, 150, 30, XDG_CONFIG_HOME=str(harness.here)) as screen:
            screen.wait_for("REPLAY")
            screen.wait_for(lambda text: re.search(r"^ +▼PID +LAUNCH/s .* COPY/s", text, re.M), "the saved columns and sort column")
            equal("TREE" in screen.text(), number == 1, f"tree view, if it was saved: {screen.text()}")
            screen.keys(*["t", "q"][number:])
            equal(screen.exit_status(), 0, f"exit status ({screen.text()})")
        chosen["tree"] = True
        equal({key: value for key, value in json.loads(kept.read_text()).items() if key != "ascending"}, chosen, "saved settings")


def replayed(tool, file, *arguments, code=0):
    done = subprocess.run([copy_for_all(harness.build / tool), "--replay", file, *map(str, arguments)], text=True,
                          capture_output=True, timeout=60, user=65534, group=65534, extra_groups=[])
    equal(done.returncode, code, f"exit status of {tool} --replay {arguments} ({done.stderr})")
    return done


def tables(text):
    """Tables in a text. Sentences such as "no launches" are left out, as recordings do not have them."""
    return [block for block in text.strip("\n").split("\n\n") if not re.search(r"^[\d:]*\n?no .*$", block)]


# Options of each tool. WALL% is left out: it is rounded when it is recorded, and again when it is shown.
tool_options = {"cudalaunch": ("-l", "--by", "pid,kernel"), "cudamemcpy": ("-l",), "cudasync": ("--columns", "-WALL%"),
         "gpualloc": (), "cudagraph": (), "cudagap": ()}


@harness.case
def tables_of_tools():
    """Each table equals that of the live run. Rows can be merged into fewer keys and longer intervals."""
    workload = Workload("graph create G; graph add G kernel 3; graph instantiate G X\n"
                        "repeat 4; launch one 5 grid=4; launch two 3; copy 3 bytes=2048; sync 2; alloc a 70000; graph launch X 2; sleep 300; end",
                        name="trainer")
    tools, files = {}, {}
    for tool, arguments in tool_options.items():
        harness.binary, files[tool] = harness.build / tool, harness.here / f"{tool}.json.zst"
        tools[tool] = Tool("-p", workload.pid, *arguments, "-T", "--record", files[tool], "0.4", json=False)
    workload.go().wait()
    for tool, run in tools.items():
        run.finish()
        again = replayed(tool, files[tool], "-T")
        equal(again.stderr, "", f"{tool} --replay")
        equal(tables(again.stdout), tables(run.text), f"tables of {tool}")
        check(len(tables(again.stdout)) >= 2, f"{tool}: {again.stdout}")

    all_in_one = replayed("cudalaunch", files["cudalaunch"], "--by", "comm,kernel", "60")
    rows = [line.split() for line in all_in_one.stdout.splitlines()[1:]]
    counts = {row[-1]: (row[0], int(row[1])) for row in rows if row[-1] in ("one", "two")}
    equal(counts, {"one": ("trainer", 20), "two": ("trainer", 12)}, "launches of the whole run")
    check(re.search("over several rows.*p99", all_in_one.stderr), f"no message about percentiles: {all_in_one.stderr}")
    copied = replayed("cudamemcpy", files["cudamemcpy"], "--by", "container", "60", "1").stdout
    equal(copied.split("\n")[1].split()[:2], ["-", "12"], f"copies ({copied})")

    check("is a recording of cudalaunch, not of cudasync" in replayed("cudasync", files["cudalaunch"], code=1).stderr, "no message about a recording of another tool")
    check("cannot be merged" in replayed("cudagap", files["cudagap"], "5", code=2).stderr, "no message about merged intervals of cudagap")


def same_tables(tool, run, file, least=1):
    again = replayed(tool, file, "-T", *(["-r", 0] if tool == "nvioctl" else []))
    equal(again.stderr, "", f"{tool} --replay")
    equal(tables(again.stdout), tables(run.text), f"tables of {tool}")
    check(len(tables(again.stdout)) >= least, f"{tool}: {again.stdout}")


@harness.case
def tables_of_ranks_driver_calls_and_stacks():
    file = lambda tool: harness.here / f"{tool}.json"
    live = lambda tool, *arguments: Tool(*arguments, "-T", "--record", file(tool), json=False, losses=True)

    harness.binary = harness.build / "ncclwait"
    ranks = Ranks(4, rank_2_is_late)
    run = live("ncclwait", *ranks.targets, "--by", "rank", "0.3")
    ranks.go().wait()
    same_tables("ncclwait", run.finish(), file("ncclwait"))

    harness.binary = harness.build / "nvioctl"
    calls = Calls(commands)
    run = live("nvioctl", *at_calls, "-p", calls.pid, "0.3")
    calls.go().wait()
    same_tables("nvioctl", run.finish(), file("nvioctl"))

    workload = Workload("repeat 3; launch one 5; copy 3; sync 2; alloc a 70000; free a; sleep 300; end")
    runs = {}
    for tool in "cudalaunch", "cudamemcpy", "cudasync", "gpualloc":
        harness.binary = harness.build / tool
        runs[tool] = live(tool, "-p", workload.pid, "-U", *(tool_options[tool] if tool == "cudasync" else []), "0.4")
    workload.go().wait()
    for tool, run in runs.items():
        same_tables(tool, run.finish(), file(tool), 2)
        check("    " in replayed(tool, file(tool)).stdout and "(workload)" in replayed(tool, file(tool)).stdout, f"unexpected stacks of {tool}")


@harness.case(alone=True)
def by_pod():
    """Two containers of a pod, another pod, and a process outside: recorded by process and kernel, shown by pod."""
    host, image, first = HostRoot(), Image(), Name()
    second, other = Name(pod=first.pod, namespace=first.namespace, pod_uid=first.pod_uid), Name()
    inside = []
    for i, name in enumerate((first, second, other), 1):
        host.kubelet(name)
        inside.append(contained(kubepods(name), f"repeat 2; launch vecadd {100 * i}; launch saxpy {i}; sleep 400; end", image=image))
    free = Workload("repeat 2; launch vecadd 7; sleep 400; end")
    file, pids = harness.here / "recorded.json", ",".join(str(one.pid) for one in (*inside, free))
    record = traced(host, "-p", pids, "--by", "pid,kernel", "--record", file, "0.3", json=False, losses=True)
    live = traced(host, "-p", pids, "--by", "pod", "-d", "1000", json=False, losses=True)
    launches_of(*inside, free)
    record.finish()
    live.finish()
    launches = lambda text: {line.split()[0]: int(line.split()[1]) for line in text.splitlines() if re.match(r"\S+ +\d+ ", line)}
    pods = {f"{first.namespace}/{first.pod}": 606, f"{other.namespace}/{other.pod}": 606, "-": 14}
    equal(launches(live.text), pods, f"live ({live.text})")
    again = replayed("cudalaunch", file, "--by", "pod", "60")
    equal(launches(again.stdout), pods, f"replayed ({again.stdout} {again.stderr})")
    by_container = replayed("cudalaunch", file, "--by", "namespace,pod,container", "60").stdout
    equal(sorted(map(int, re.findall(r" (\d+) +\d+\.\d ", by_container))), [14, 202, 404, 606], f"by container ({by_container})")


endless = {"fifo": lambda path: os.mkfifo(path),
           "newlines": lambda path: path.write_bytes(gzip.compress(b"\n" * (1 << 26)) * 64)}  # 4 GB in 4 MB
readers = {"cudatop": ["--replay"], "cudalaunch": ["--replay"], "cudadiff": []}


@case(each={f"{tool},{kind}": (tool, kind) for tool in readers for kind in endless})
def signals_end_the_reading(row):
    """SIGINT and SIGTERM end a tool within a second while it waits for a recording, or unpacks a large one."""
    tool, kind = row
    file = harness.here / "recording.gz"
    endless[kind](file)
    for number, delay in itertools.product((signal.SIGINT, signal.SIGTERM), (0.3, 1.5)):
        run = subprocess.Popen([harness.build / tool, *readers[tool], file, *([file] if tool == "cudadiff" else [])],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        kill_at_end(run)
        time.sleep(delay * harness.patience)
        equal(run.poll(), None, f"exit status while reading ({number})")
        began = time.monotonic()
        run.send_signal(number)
        _, error = run.communicate(timeout=60)
        check(time.monotonic() - began < harness.patience, f"late exit after signal {number}: {time.monotonic() - began:.2f} s")
        # cudadiff is killed by the signal: exit status 0 would mean that the recordings were compared.
        check(run.returncode == (-number if tool == "cudadiff" else 0), f"unexpected status {run.returncode}: {error}")
