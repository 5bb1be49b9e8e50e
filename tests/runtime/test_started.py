# SPDX-License-Identifier: Apache-2.0
"""Programs that the tool starts itself: -- PROGRAM ARGS."""
import signal
import subprocess

import harness
from harness import case, check, equal
from programs import Tool, calls_in, strange_signals
from truth import same_counts

calls = "launch vecadd 1009; launch saxpy 503"


def workload(script, form="workload-dlopen"):
    return [harness.standin / form, "--truth", harness.here / "started.truth", script]


def started(program, *arguments, **options):
    return Tool(*arguments, env={"LD_LIBRARY_PATH": str(harness.standin)}, program=program, **options)


@case(each={"session": "session", "multi": "multi", "tracefs": "tracefs"}, long=("multi", "tracefs"))
def from_the_first_call(way):
    """A program that launches at once is counted whole, though nobody has mapped its library before."""
    tool = started(workload(calls), "--attach", way)
    same_counts(tool.finish(), calls_in(harness.here / "started.truth"))


@case(each={"usual": None, "strange_signals": strange_signals})
def children_and_status(preexec):
    """What a script starts is counted once its library is mapped, and the status is the script's. The script has the
    limits, signals, capabilities and descriptors of whoever starts the tool."""
    asked = "ulimit -n; grep -E 'Sig(Blk|Ign)|CapEff' /proc/self/status; ls /proc/self/fd"
    words = " ".join(f"'{word}'" for word in workload(f"dlopen; sleep 300; {calls}"))
    script = f"{words}; ({asked}) > {harness.here}/inside; exit 7"
    tool = started(["sh", "-c", script], preexec=preexec).finish(7)
    same_counts(tool, calls_in(harness.here / "started.truth"))
    subprocess.run(["sh", "-c", f"({asked}) > {harness.here}/outside"], stdin=subprocess.DEVNULL,
                   capture_output=True, check=True, preexec_fn=preexec)
    equal((harness.here / "inside").read_text(), (harness.here / "outside").read_text(), "what the program has")


@case
def ctrl_c():
    """A signal that the tool alone gets reaches the program, too, and is its status; the report is printed."""
    tool = started(["sleep", "60"])
    tool.process.send_signal(signal.SIGINT)
    tool.finish(128 + signal.SIGINT)
    check(tool.of_type("end"), "a report")


@case
def the_tool_is_killed():
    """A program that is still held does not stay behind: leftovers would find it."""
    tool = started(["sleep", "60"], banner=False)
    tool.process.kill()
    tool.process.wait()
