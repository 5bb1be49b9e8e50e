# SPDX-License-Identifier: Apache-2.0
import signal
import subprocess


def traces(said):
    """Whether a tool says so, in the file of its messages. On a machine that is busy it may begin before it has found the
    library that a process has mapped."""
    text = said.read_text(errors="replace")
    return "Tracing " in text and ("yet; waiting for one" not in text or "now; tracing" in text)


def end(processes, seconds=30):
    """As Ctrl-C does, one after the other; what does not heed it is killed. Those that have ended are left alone."""
    for process in processes:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
