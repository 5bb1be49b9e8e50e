# SPDX-License-Identifier: Apache-2.0
"""The terminal is restored whenever the program exits, crashes or is stopped."""
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import terminal
from stage import case, equal, folder, log, play, restored, start


def ends(how, signal_number, status):
    """Ends the program by a signal, or by the crash that the row "1000" causes."""
    with start(*how) as screen:
        screen.wait_for("1005")
        if how:
            screen.keys("End", "Enter")
        else:
            os.kill(screen.pid(), signal_number)
        equal(screen.exit_status(), status)
        restored(screen)


# SIGTERM, SIGINT and SIGHUP end the program's main loop, and the exit status is 0. The other signals kill it.
endings = {number.name: ((), number, 0 if number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) else 128 + number)
           for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS,
                          signal.SIGFPE, signal.SIGILL, signal.SIGQUIT)}
endings |= {how: (("--crash", how), None, status) for how, status in
            (("fault", 128 + signal.SIGSEGV), ("overflow", 128 + signal.SIGSEGV), ("terminate", 128 + signal.SIGABRT),
             ("exit", 3), (str(int(signal.SIGABRT)), 128 + signal.SIGABRT))}
for name, ending in endings.items():
    def ended(ending=ending):
        ends(*ending)
    ended.__name__ = f"ended_by_{name}"
    case(ended)


@case
def killed_by_keys():
    for keys, status in ("C-c", 0), ("C-\\", 128 + signal.SIGQUIT):
        with start() as screen:
            screen.wait_for("1005")
            screen.keys(keys)
            equal(screen.exit_status(), status)
            restored(screen)


@case
def stopped_and_back():
    with start() as screen:
        screen.wait_for("1005")
        pid = screen.pid()

        def state():
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

        screen.keys("C-z")
        screen.wait_for(lambda _: state() == "T", "the program stopped")
        screen.wait_for(lambda _: screen.format("alternate_on") == "0", "the shell's screen")
        equal(screen.format("cursor_flag"), "1")


@case
def foreground_again():
    # Runs the program in an interactive shell, which has fg.
    log.write_text("")
    with terminal.Terminal(["bash", "--norc", "-i"], PLAY_LOG=str(log), PS1="ready> ") as screen:
        screen.wait_for("ready>")
        screen.type(f"stty -a > {folder}/before; {shlex.quote(str(play))}")
        screen.keys("Enter")
        screen.wait_for("1005")
        for _ in range(3):
            screen.keys("C-z")
            screen.wait_for("Stopped")
            screen.type(f"stty -a > {folder}/after")
            screen.keys("Enter")
            screen.wait_for(lambda _: screen.format("alternate_on") == "0", "the shell's screen")
            screen.type("fg")
            screen.keys("Enter")
            screen.wait_for(lambda text: "1005" in text and "Stopped" not in text, "the screen again")
            equal((folder / "after").read_text(), (folder / "before").read_text())
        screen.keys("Down", "Enter")
        screen.wait_for("kernels of 1004")
        screen.keys("Escape", "q")
        screen.wait_for("the screen has ended")


@case
def terminal_closed():
    screen = start()
    try:
        screen.wait_for("1005")
        pid = screen.pid()
        screen.tmux("kill-session")
        until = time.monotonic() + terminal.patience
        while pathlib.Path(f"/proc/{pid}").exists():
            assert time.monotonic() < until, "the program still runs without a terminal"
            time.sleep(0.05)
    finally:
        screen.stop()


@case
def input_ends():
    # SIGHUP is ignored, so the program only notices the end of its input.
    reader = ("import os, pty, sys, time\n"
              "pid, fd = pty.fork()\n"
              "if not pid:\n"
              "    import signal\n"
              "    signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
              "    os.execv(sys.argv[1], sys.argv[1:])\n"
              "seen = b''\n"
              "while b'1005' not in seen: seen += os.read(fd, 4096)\n"
              "os.close(fd)\n"
              "until = time.monotonic() + float(sys.argv[-1])\n"
              "while time.monotonic() < until:\n"
              "    done, status = os.waitpid(pid, os.WNOHANG)\n"
              "    if done: sys.exit(os.waitstatus_to_exitcode(status) != 0)\n"
              "    time.sleep(0.05)\n"
              "os.kill(pid, 9)\n"
              "sys.exit(2)\n")
    code = subprocess.run([sys.executable, "-c", reader, play, "--patience", str(terminal.patience)],
                          env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"}).returncode
    equal(code, 0)
