# SPDX-License-Identifier: Apache-2.0
"""cudatop's screen, in a real terminal and with real probes, shows what the workloads did."""
import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios

import harness
import leftovers
import system
import tops
from harness import Skip, check, equal, wait_until
from programs import Workload
from test_alloc_nvml import Nvml, library
from tops import case

sys.path.append(str(harness.root / "tests/screen"))
import terminal  # noqa: E402

terminal.patience *= harness.patience


class Terminal(terminal.Terminal):
    def stop(self):
        """Also waits until the processes in the terminal have exited."""
        server = self.format("pid")
        inside = {int(server), *system.descendants(int(server))} if server.isdigit() else set()
        super().stop()
        wait_until(lambda: not any(system.stat_fields(pid)[:1] not in ([], ["Z"]) for pid in inside),
                   "all processes have exited")


class Screen(Terminal):
    """The tool on its own terminal. Intervals are so long that figures do not change until next()."""

    def __init__(self, *arguments, interval=60, by="pid", columns=230, lines=50, nvml="off", **environment):
        if not terminal.available:
            raise Skip("there is no tmux")
        if not {"-p", "-c"} & set(arguments):
            harness.must_be_alone()
        super().__init__([harness.binary, *([interval] if interval else []), "--nvml", nvml, *arguments], columns, lines,
                         ASAN_OPTIONS="exitcode=99", **environment)
        harness.at_end.append(self.stop)
        self.wait_for(f"by {by}")
        self.tool = self.pid()
        (harness.here / f"tool.{self.tool}").touch()  # for leftovers

    def interval(self, seconds):
        self.keys("d")
        self.type(str(seconds))
        self.keys("Enter")

    def next(self, expected):
        """Shows one interval with everything done since the last one, then pauses."""
        self.interval(4)
        self.wait_for(lambda text: re.search(r"^cudatop \d", text) and (expected in text if isinstance(expected, str) else expected(text)),
                      "an interval")
        self.keys("Space")
        self.wait_for("PAUSED")
        self.interval(60)

    def rows(self):
        """Cells of each row by header, without command lines and trends, as these have spaces."""
        lines = [line for line in self.lines() if line.strip()]
        at = next((i for i, line in enumerate(lines) if re.search(r"\bPID\b.*LAUNCH/s", line)), None)
        if at is None:
            return []  # the screen shows another page
        begin, end = (lines[at].find(name) for name in ("POD/COMMAND", "TREND"))
        plain = lambda line: line if min(begin, end) < 0 else line[:begin] + line[end + 8:]
        head = re.sub(r"[▲▼*]", " ", plain(lines[at])).split()
        return [dict(zip(head, plain(line).split())) for line in lines[at + 1:] if re.match(r"\s*\d+\s", line)]

    def column(self, name):
        return [row[name] for row in self.rows()]

    def save(self, kind):
        file = harness.here / f"saved{len(list(harness.here.glob('saved*')))}.{kind}"
        self.keys("w", "C-u")
        self.type(str(file))
        self.keys("Enter")
        wait_until(lambda: file.exists() and file.read_text().endswith("\n"), "the screen is saved")
        return file.read_text()

    def saved(self):
        """Every column of every shown row."""
        return [json.loads(line) for line in self.save("json").splitlines()]

    def quit(self):
        self.keys("q")
        self.check_exit()

    def check_exit(self):
        equal(self.exit_status(), 0, f"exit status ({self.text()})")
        check_terminal(self)


def check_terminal(screen):
    equal(screen.after.read_text(), screen.before.read_text(), "settings of the terminal")
    equal((screen.format("alternate_on"), screen.format("cursor_flag")), ("0", "1"), "screen and cursor")


def lasting_workload(script):
    """A workload that makes these calls on request and then keeps running; and the function that requests them."""
    file = harness.here / f"done{len(list(harness.here.glob('workload*.err')))}"
    workload = Workload(f"{script}; touch {file}; forever; sleep 20; end")
    return workload, lambda: (workload.go(), wait_until(file.exists, "the workload has done it"))


def start_three():
    """Three workloads, each with the function that starts its calls: the most launches, the most copies, the most
    memory."""
    return [lasting_workload(script) for script in (
        "name launcher; launch vecadd 30011; launch saxpy 7 fn=cuLaunchKernelEx",
        "name copier; launch vecadd 20; copy 5003; sync 11; threads 2; copy 100; end",
        "name leaker; launch vecadd 1000; alloc a 1073741824; alloc b 99 result=2")]


def typed_as_it_starts(keys, *later):
    """Output of the tool on a terminal. The keys are typed as soon as the tool shows something, and further ones as
    soon as it shows the given texts."""
    steps = [("tarting", keys), *later]
    ours, its = pty.openpty()
    before = termios.tcgetattr(its)
    environment = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": str(harness.here)}
    tool = subprocess.Popen([harness.binary, "--nvml", "off", "-p", str(os.getpid())], stdin=its, stdout=its, stderr=its,
                            env=environment, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(its)
    output = ""
    while True:
        try:
            output += os.read(ours, 65536).decode(errors="replace")
        except OSError:  # no process has the terminal open
            break
        if steps and steps[0][0] in output:
            os.write(ours, steps.pop(0)[1])
    equal(tool.wait(), 0, f"exit status: {output!r}")
    equal(termios.tcgetattr(ours), before, "settings of the terminal")
    check("\x1b[?1049h" in output and "\x1b[?1049l" in output, f"the alternate screen was not switched on and off: {output!r}")
    os.close(ours)
    return output


@case(asan=True, each={"q": b"q", "ctrl_c": b"\x03"})
def quit_while_it_starts(key):
    """The screen appears before programs are loaded; a key then quits."""
    output = typed_as_it_starts(key)
    check("every" not in output, f"the tool traced before it exited: {output!r}")


@case
def typed_while_it_starts():
    typed_as_it_starts(b"2?", ("Keys", b"q"), ("by thread", b"q"))


@case(asan=True)
def numbers_order_and_views():
    three = start_three()
    workloads = [workload for workload, _ in three]
    with Screen("-p", ",".join(str(workload.pid) for workload in workloads), "-s", "LAUNCH/s") as screen:
        for _, do in three:
            do()
        screen.next(lambda text: "launcher" in text)
        names = lambda: screen.column("COMM")
        equal(names(), ["launcher", "leaker", "copier"], "most launches first")
        saved = screen.saved()
        for row, shown in zip(saved, screen.rows()):
            for header, key in ("LAUNCH/s", "launches_per_second"), ("GRAPH/s", "graph_launches_per_second"), \
                    ("ERR/s", "errors_per_second"):
                check(abs(float(shown[header]) - row[key]) < 0.051, f"{header} {shown[header]} of {row}")
            equal((shown["PID"], shown["FAILED"]), (str(row["pid"]), str(row["allocation_failures"])), "pid, failures")
            check(abs(row["launches_per_second"] * row["interval_ns"] / 1e9 - row["launches"]) < 0.02 * row["launches"],
                  f"rate and count differ: {row}")
        equal([row["MEM"] for row in screen.rows() if row["COMM"] == "leaker"], [">=1.0G"], "memory")
        screen.keys(">")
        screen.wait_for(lambda _: names() == ["leaker", "copier", "launcher"], "most memory first")
        screen.keys("r")
        screen.wait_for(lambda _: names() == ["launcher", "copier", "leaker"], "least memory first")
        screen.keys("/")
        screen.type("copier")
        screen.keys("Enter")
        screen.wait_for(lambda _: names() == ["copier"], "rows with this text")
        screen.keys("2")
        screen.wait_for("by thread")
        screen.wait_for(lambda _: names() == ["copier"] * 3, "its threads")
        by_thread = screen.saved()
        screen.keys("Escape", "b", "Home", "Down", "Down", "Down", "Enter")
        screen.wait_for("by pod")
        screen.wait_for(lambda text: re.search(r"^ *POD\b.*\bLAUNCH/s", text, re.M), "the pods' column")
        by_pod = screen.saved()
        screen.keys("1")
        screen.wait_for(lambda _: len(names()) == 3, "processes again")
        screen.quit()
    truth = [call for workload in workloads for call in workload.stop().truth()]
    equal(tops.found(saved), tops.expected(truth), "figures of the screen")
    copier = [call for call in truth if call["pid"] == workloads[1].pid]
    equal(tops.found(by_thread, ("tid",)), tops.expected(copier, ("tid",)), "threads")
    equal(tops.found(by_pod, ()), tops.expected(truth, ()), "pods")


@case
def drill_down():
    workload, do = lasting_workload("launch vecadd 4001; launch reduce 13; copy 211 kind=2; sync 17 block_us=1000; build scale 3; graph 19; alloc a 70000")
    with Screen("-p", workload.pid) as screen:
        do()
        screen.next(f"{workload.pid} workload")
        screen.keys("Enter")
        screen.wait_for(lambda text: re.search(r"^ +4001 +[\d.]+ .*vecadd", text, re.M), "launches of the kernel")
        page = screen.save("txt")  # all of it, which is longer than the screen
        check(f", child of {os.getpid()} python" in page, f"no parent on: {page}")
        for line in (r"^ +4001 +[\d.]+ .*vecadd", r"^ +13 +[\d.]+ .*reduce", r"^D2H +211 ",
                     r"^ +19 ", r"cudaMemcpy\+", r"cudaDeviceSynchronize\+", r"no stack: one is sampled per 10 ms",
                     r"workload::\w+.*\(workload\)", r"^device +>=256\S+ +>=1 ", r"^device +>=68\S+ +>=1 ", r"65536 -> 131071 +: 1 "):
            check(re.search(line, page, re.M), f"no {line} on: {page}")
        for calls in "launches", "copies":
            check(re.search(rf"^Sampled stacks of {calls}.*\n *SAMPLES SHARE%\n *\d+ .*\n(?: .*\n)*? .*\(workload\)",
                            page, re.M), f"no stacks of {calls} on: {page}")
        waits = page[page.index("Waits, by caller"):page.index("Durations of waits")]
        for kind, count in ("context", 17), ("copy", 211):
            equal(sum(map(int, re.findall(rf"^{kind} +(\d+) ", waits, re.M))), count, f"waits: {kind}")
        screen.keys("Escape")
        screen.wait_for(lambda _: screen.column("PID") == [str(workload.pid)], "the list")
        screen.quit()
    workload.stop()


@case(asan=True)
def rows_before_the_first_figures():
    """Each process that maps a driver has a row as soon as tracing begins, whether it calls all the time or never."""
    busy = Workload("forever; launch vecadd 1; sleep 1; end").go()
    silent = Workload("sleep 20000")
    with Screen("-p", f"{busy.pid},{silent.pid}", interval=60) as screen:
        screen.wait_for(lambda _: sorted(screen.column("PID")) == sorted(map(str, (busy.pid, silent.pid))), "both")
        equal(screen.column("LAUNCH/s"), ["-", "-"], "figures that are not known yet")
        check("No problem found" not in screen.text(), f"verdict without figures: {screen.text()}")
        screen.quit()
    busy.stop()
    silent.stop()


@case
def sampled_stacks():
    """There are enough samples to show callers in proportion to their calls, and few enough to cost almost nothing. A
    process without calls can be opened, and stays open."""
    workload = Workload("forever; launch vecadd 3000; launch reduce 1000 fn=cuLaunchKernelEx; sleep 10; end")
    with Screen("-p", workload.pid, interval=0.5, lines=100) as screen:
        screen.wait_for(f"{workload.pid} workload")
        screen.keys("Enter")
        workload.go()
        screen.wait_for(lambda text: 'since this page was opened 10 s ago' in text, "ten seconds")
        page = screen.text()
        found = re.search(r"^Sampled stacks of launches, since.*\n *SAMPLES SHARE%\n((?: .*\n)+)", page, re.M)
        rows = re.findall(r"^ +(\d+) +[\d.]+ *\n +(\S+)", found[1] if found else "", re.M)
        check(len(rows) == 2 and rows[0][1].startswith("cudaLaunchKernel+") and rows[1][1].startswith("workload::"),
              f"callers missing on: {page}")
        samples = [int(count) for count, _ in rows]
        launches = int(re.search(r"^Kernels, since.*\n.*\n +(\d+) +[\d.]+ +vecadd", page, re.M)[1])
        check(300 < sum(samples) < launches / 20, f"{samples} samples of {launches} launches")
        check(0.15 < samples[1] / sum(samples) < 0.35, f"{samples}: a quarter of the samples must be from the second caller")
        screen.keys("Escape")
        screen.wait_for(lambda _: screen.column("PID") == [str(workload.pid)], "the list")
        screen.quit()
    workload.stop()


@case
def memory_growth_since_opening():
    workload = Workload("alloc a 70000; sleep 2000; forever; alloc b 1048576; sleep 200; end")
    with Screen("-p", workload.pid, interval=0.5, lines=100) as screen:
        workload.go()
        screen.wait_for(f"{workload.pid} workload")
        screen.keys("Enter")
        screen.wait_for(lambda text: re.search(r"Memory held, by call stack: \+\d+\.\dM since this page was opened \d+ s ago", text),
                        "growth of held memory")
        screen.keys("Escape")
        screen.wait_for(lambda _: screen.column("PID") == [str(workload.pid)], "the list")
        screen.quit()
    workload.stop()


@case(asan=True)
def sizes():
    """Resizes down to one character and back, while figures change."""
    workload, do = lasting_workload("forever; launch vecadd 10; sleep 1; end")
    workload.go()
    with Screen("-p", workload.pid, interval=0.2) as screen:
        screen.wait_for("workload")
        sizes = [(1, 1), (80, 24), (2, 1), (1, 50), (200, 1), (40, 10), (3, 3)]
        for columns, lines in 2 * sizes + [(80, 24)]:
            screen.resize(columns, lines)
        screen.wait_for(lambda text: "workload" in text and "LAUNCH/s" in text, "the screen again")
        screen.keys("Enter")
        screen.wait_for("Kernels")
        for columns, lines in sizes + [(230, 50)]:
            screen.resize(columns, lines)
        screen.wait_for(lambda text: "Help" in "".join(text.split("\n")[lines - 1:lines]), "the last size")  # tmux is slow
        screen.wait_for("vecadd")
        screen.keys("Escape")
        screen.wait_for("LAUNCH/s")
        screen.quit()
    workload.stop()


@case
def nvml_that_fails_or_hangs():
    """The screen appears, and keys work."""
    workload, do = lasting_workload("launch vecadd 10")
    for answers in "fail device 0 15", "hang":
        nvml = Nvml(answers)
        with Screen("-p", workload.pid, interval=0.2, nvml=harness.standin / library, STANDIN_NVML=str(nvml.path)) as screen:
            screen.wait_for("workload")
            screen.keys("2")
            screen.wait_for("by thread")
            screen.quit()
    workload.stop()


@case
def signal_to_a_process():
    (first, do_first), (second, do_second) = lasting_workload("launch vecadd 10"), lasting_workload("name victim; launch vecadd 10")
    with Screen("-p", f"{first.pid},{second.pid}", interval=0.2) as screen:
        do_first(), do_second()
        screen.wait_for(lambda text: "victim" in text and str(first.pid) in screen.column("PID"), "both")
        screen.type("\\victim")
        screen.keys("Enter", "K")
        screen.wait_for(f"Send SIGTERM to {second.pid} victim?")
        screen.keys("9")
        equal(second.process.wait(), -signal.SIGKILL, "exit status of the victim")
        screen.wait_for(f"sent SIGKILL to {second.pid}")
        screen.wait_for(lambda _: screen.column("PID") == [str(first.pid)], "the other process")
        screen.quit()
    first.stop()


@case(each={name: getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT")})
def signals_restore_the_terminal(number):
    """The terminal is restored, the exit status is 0, and no program stays attached."""
    workload, do = lasting_workload("launch vecadd 10")
    with Screen("-p", workload.pid, interval=0.2) as screen:
        do()
        screen.wait_for("workload")
        held = leftovers.programs_of(screen.tool)
        check(len(held) > 10, "too few programs")
        os.kill(screen.tool, number)
        screen.check_exit()
    wait_until(lambda: not held & leftovers.programs(), "the programs are unloaded")
    equal(workload.process.poll(), None, "exit status of the target")
    workload.stop()


@case
def killed_target():
    """The row of a killed process disappears, and the other one stays."""
    (first, do_first), (second, do_second) = lasting_workload("launch vecadd 10"), lasting_workload("launch vecadd 10")
    with Screen("-p", f"{first.pid},{second.pid}", interval=0.2) as screen:
        do_first(), do_second()
        screen.wait_for(lambda text: {str(first.pid), str(second.pid)} <= set(screen.column("PID")), "both")
        first.process.kill()
        screen.wait_for(lambda _: screen.column("PID") == [str(second.pid)], "the other process")
        screen.quit()
    second.stop()
