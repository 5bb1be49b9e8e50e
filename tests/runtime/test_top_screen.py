# SPDX-License-Identifier: Apache-2.0
"""cudatop on a screen, in a real terminal, with real probes: what is seen is what was done."""
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


class Screen(terminal.Terminal):
    """The case's tool on a screen of its own. Its intervals are so long that figures stand still until next()."""

    def __init__(self, *arguments, interval=60, by="pid", columns=230, lines=50, nvml="off", **environment):
        if not terminal.available:
            raise Skip("there is no tmux")
        if not {"-p", "-c"} & set(arguments):
            harness.must_be_alone()
        words = " ".join(map(str, (harness.binary, interval, "--nvml", nvml, *arguments)))
        super().__init__(words, columns, lines, ASAN_OPTIONS="exitcode=99", **environment)
        harness.at_end.append(self.stop)
        self.wait_for(f"by {by}")
        self.tool = self.pid()
        (harness.here / f"tool.{self.tool}").touch()  # for leftovers

    def stop(self):
        """What was in it ends a moment later than it."""
        server = self.format("pid")
        inside = {int(server), *system.descendants(int(server))} if server.isdigit() else set()
        super().stop()
        wait_until(lambda: not any(system.stat_fields(pid)[:1] not in ([], ["Z"]) for pid in inside), "all has ended")

    def interval(self, seconds):
        self.keys("d")
        self.type(str(seconds))
        self.keys("Enter")

    def next(self, seen):
        """One interval with all that was done since the last one, which then stands still."""
        self.interval(4)
        self.wait_for(lambda text: re.search(r"^cudatop \d", text) and (seen in text if isinstance(seen, str) else seen(text)),
                      "an interval")
        self.keys("Space")
        self.wait_for("PAUSED")
        self.interval(60)

    def rows(self):
        """Cells of each row below the headers, by header, but for command lines and trends, which have spaces."""
        lines = [line for line in self.lines() if line.strip()]
        at = next((i for i, line in enumerate(lines) if re.search(r"\bPID\b.*LAUNCH/s", line)), None)
        if at is None:
            return []  # another page
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
        """Every column of every row that is shown."""
        return [json.loads(line) for line in self.save("json").splitlines()]

    def quit(self):
        self.keys("q")
        self.over()

    def over(self):
        equal(self.exit_status(), 0, f"exit status ({self.text()})")
        restored(self)


def restored(screen):
    equal(screen.after.read_text(), screen.before.read_text(), "settings of the terminal")
    equal((screen.format("alternate_on"), screen.format("cursor_flag")), ("0", "1"), "screen and cursor")


def living(script):
    """A workload that does this when it is told to, and then lives on."""
    file = harness.here / f"done{len(list(harness.here.glob('workload*.err')))}"
    workload = Workload(f"{script}; touch {file}; forever; sleep 20; end")
    return workload, lambda: (workload.go(), wait_until(file.exists, "the workload has done it"))


def start_three():
    """One that launches most, one that copies, one that holds most memory; and what lets them do it."""
    return [living(script) for script in (
        "name launcher; launch vecadd 30011; launch saxpy 7 fn=cuLaunchKernelEx",
        "name copier; launch vecadd 20; copy 5003; sync 11; threads 2; copy 100; end",
        "name leaker; launch vecadd 1000; alloc a 1073741824; alloc b 99 result=2")]


def typed_as_it_starts(keys, *later):
    """What a terminal is sent on which these are typed as soon as there is something to see, and then others, each as
    soon as it shows something."""
    steps = [("tarting", keys), *later]
    ours, its = pty.openpty()
    before = termios.tcgetattr(its)
    environment = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", "XDG_CONFIG_HOME": str(harness.here)}
    tool = subprocess.Popen([harness.binary, "--nvml", "off", "-p", str(os.getpid())], stdin=its, stdout=its, stderr=its,
                            env=environment, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(its)
    seen = ""
    while True:
        try:
            seen += os.read(ours, 65536).decode(errors="replace")
        except OSError:  # nobody has it open any more
            break
        if steps and steps[0][0] in seen:
            os.write(ours, steps.pop(0)[1])
    equal(tool.wait(), 0, f"exit status: {seen!r}")
    equal(termios.tcgetattr(ours), before, "settings of the terminal")
    check("\x1b[?1049h" in seen and "\x1b[?1049l" in seen, f"its screen came and went: {seen!r}")
    os.close(ours)
    return seen


@case(asan=True, each={"q": b"q", "ctrl_c": b"\x03"})
def quit_while_it_starts(key):
    """The screen is there before programs are loaded, and a key ends it then."""
    seen = typed_as_it_starts(key)
    check("every" not in seen, f"it ended before it traced: {seen!r}")


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
                  f"a rate is a count in its time: {row}")
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
        of_pods = screen.saved()
        screen.keys("1")
        screen.wait_for(lambda _: len(names()) == 3, "processes again")
        screen.quit()
    truth = [call for workload in workloads for call in workload.stop().truth()]
    equal(tops.found(saved), tops.expected(truth), "what the screen was about")
    copier = [call for call in truth if call["pid"] == workloads[1].pid]
    equal(tops.found(by_thread, ("tid",)), tops.expected(copier, ("tid",)), "threads")
    equal(tops.found(of_pods, ()), tops.expected(truth, ()), "pods")


@case
def drill_down():
    workload, do = living("launch vecadd 4001; launch reduce 13; copy 211 kind=2; sync 17 block_us=1000; build scale 3; graph 19; alloc a 70000")
    with Screen("-p", workload.pid) as screen:
        do()
        screen.next(f"{workload.pid} workload")
        screen.keys("Enter")
        screen.wait_for(lambda text: re.search(r"^ +4001 +[\d.]+ .*vecadd", text, re.M), "launches of the kernel")
        page = screen.save("txt")  # all of it, which is longer than the screen
        check(f", child of {os.getpid()} python" in page, f"its parent is not seen on: {page}")
        for line in (r"^ +4001 +[\d.]+ .*vecadd", r"^ +13 +[\d.]+ .*reduce", r"^D2H +211 ",
                     r"^ +19 ", r"cudaMemcpy\+", r"cudaDeviceSynchronize\+", r"no stack: one is sampled per 10 ms",
                     r"workload::\w+.*\(workload\)", r"^device +>=256\S+ +>=1 ", r"^device +>=68\S+ +>=1 ", r"65536 -> 131071 +: 1 "):
            check(re.search(line, page, re.M), f"{line} is not seen on: {page}")
        for calls in "launches", "copies":
            check(re.search(rf"^Sampled stacks of {calls}.*\n *SAMPLES SHARE%\n *\d+ .*\n(?: .*\n)*? .*\(workload\)",
                            page, re.M), f"stacks of {calls} are not seen on: {page}")
        waits = page[page.index("Waits, by caller"):page.index("Durations of waits")]
        for kind, count in ("context", 17), ("copy", 211):
            equal(sum(map(int, re.findall(rf"^{kind} +(\d+) ", waits, re.M))), count, f"waits: {kind}")
        screen.keys("Escape")
        screen.wait_for(lambda _: screen.column("PID") == [str(workload.pid)], "the list")
        screen.quit()
    workload.stop()


@case(asan=True)
def rows_before_the_first_figures():
    """Who maps a driver is there as soon as tracing begins: also one that calls all the time, and one that is silent."""
    busy = Workload("forever; launch vecadd 1; sleep 1; end").go()
    silent = Workload("sleep 20000")
    with Screen("-p", f"{busy.pid},{silent.pid}", interval=60) as screen:
        screen.wait_for(lambda _: sorted(screen.column("PID")) == sorted(map(str, (busy.pid, silent.pid))), "both")
        equal(screen.column("LAUNCH/s"), ["-", "-"], "figures that nobody knows yet")
        check("No problem found" not in screen.text(), f"a verdict on nothing: {screen.text()}")
        screen.quit()
    busy.stop()
    silent.stop()


@case
def stacks_of_some_calls():
    """As many as say where calls come from, in proportion, and so few that they cost nothing. The row of a process that
    has not called yet is opened, and stays."""
    workload = Workload("forever; launch vecadd 3000; launch reduce 1000 fn=cuLaunchKernelEx; sleep 10; end")
    with Screen("-p", workload.pid, interval=0.5, lines=100) as screen:
        screen.wait_for(f"{workload.pid} workload")
        screen.keys("Enter")
        workload.go()
        screen.wait_for(lambda text: 'since it was opened 10 s ago' in text, "ten seconds")
        page = screen.text()
        found = re.search(r"^Sampled stacks of launches, since.*\n *SAMPLES SHARE%\n((?: .*\n)+)", page, re.M)
        rows = re.findall(r"^ +(\d+) +[\d.]+ *\n +(\S+)", found[1] if found else "", re.M)
        check(len(rows) == 2 and rows[0][1].startswith("cudaLaunchKernel+") and rows[1][1].startswith("workload::"),
              f"both callers are not seen on: {page}")
        samples = [int(count) for count, _ in rows]
        launches = int(re.search(r"^Kernels, since.*\n.*\n +(\d+) +[\d.]+ +vecadd", page, re.M)[1])
        check(300 < sum(samples) < launches / 20, f"{samples} of {launches} launches were looked at")
        check(0.15 < samples[1] / sum(samples) < 0.35, f"{samples}: a quarter comes from the second place")
        screen.keys("Escape")
        screen.wait_for(lambda _: screen.column("PID") == [str(workload.pid)], "the list")
        screen.quit()
    workload.stop()


@case
def memory_since_it_was_opened():
    workload = Workload("alloc a 70000; sleep 2000; forever; alloc b 1048576; sleep 200; end")
    with Screen("-p", workload.pid, interval=0.5, lines=100) as screen:
        workload.go()
        screen.wait_for(f"{workload.pid} workload")
        screen.keys("Enter")
        screen.wait_for(lambda text: re.search(r"Memory held, by call stack: \d+\.\dM more, since it was opened \d+ s ago", text),
                        "what it holds more")
        screen.keys("Escape")
        screen.wait_for(lambda _: screen.column("PID") == [str(workload.pid)], "the list")
        screen.quit()
    workload.stop()


@case(asan=True)
def sizes():
    """Down to one character and back, while figures come and go."""
    workload, do = living("forever; launch vecadd 10; sleep 1; end")
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
        screen.wait_for(lambda text: "Help" in "".join(text.split("\n")[lines - 1:lines]), "the last size")  # tmux takes its time
        screen.wait_for("vecadd")
        screen.keys("Escape")
        screen.wait_for("LAUNCH/s")
        screen.quit()
    workload.stop()


@case
def nvml_that_fails_or_hangs():
    """Neither keeps the screen from coming, nor keys from being taken."""
    workload, do = living("launch vecadd 10")
    for answers in "fail device 0 15", "hang":
        nvml = Nvml(answers)
        with Screen("-p", workload.pid, interval=0.2, nvml=harness.standin / library, STANDIN_NVML=str(nvml.path)) as screen:
            screen.wait_for("workload")
            screen.keys("2")
            screen.wait_for("by thread")
            screen.quit()
    workload.stop()


@case
def a_signal_to_its_process():
    (first, do_first), (second, do_second) = living("launch vecadd 10"), living("name victim; launch vecadd 10")
    with Screen("-p", f"{first.pid},{second.pid}", interval=0.2) as screen:
        do_first(), do_second()
        screen.wait_for(lambda text: "victim" in text and str(first.pid) in screen.column("PID"), "both")
        screen.type("\\victim")
        screen.keys("Enter", "K")
        screen.wait_for(f"Send SIGTERM to {second.pid} victim?")
        screen.keys("9")
        equal(second.process.wait(), -signal.SIGKILL, "how it ended")
        screen.wait_for(f"sent SIGKILL to {second.pid}")
        screen.wait_for(lambda _: screen.column("PID") == [str(first.pid)], "the one that lives")
        screen.quit()
    first.stop()


@case(each={name: getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT")})
def ended_by(number):
    """The terminal is as it was, the status 0, and nothing stays attached."""
    workload, do = living("launch vecadd 10")
    with Screen("-p", workload.pid, interval=0.2) as screen:
        do()
        screen.wait_for("workload")
        held = leftovers.programs_of(screen.tool)
        check(len(held) > 10, "there is something to be left")
        os.kill(screen.tool, number)
        screen.over()
    wait_until(lambda: not held & leftovers.programs(), "the programs are gone")
    equal(workload.process.poll(), None, "exit status of who was traced")
    workload.stop()


@case
def killed_target():
    """The row of a process that is killed goes, its drill-down says so, and the others stay."""
    (first, do_first), (second, do_second) = living("launch vecadd 10"), living("launch vecadd 10")
    with Screen("-p", f"{first.pid},{second.pid}", interval=0.2) as screen:
        do_first(), do_second()
        screen.wait_for(lambda text: {str(first.pid), str(second.pid)} <= set(screen.column("PID")), "both")
        first.process.kill()
        screen.wait_for(lambda _: screen.column("PID") == [str(second.pid)], "the one that lives")
        screen.quit()
    second.stop()
