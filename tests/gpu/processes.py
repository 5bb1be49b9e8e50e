# SPDX-License-Identifier: Apache-2.0
"""Start and end of traced programs and tools."""
import signal
import subprocess


def is_tracing(messages):
    """Whether a tool is tracing, according to the file with its messages. On a busy machine, it may print "Tracing"
    before it finds the library that a process has mapped."""
    text = messages.read_text(errors="replace")
    return "Tracing " in text and ("yet; waiting for one" not in text or "now; tracing" in text)


def end(processes, seconds=30):
    """Interrupts processes (SIGINT) one after the other; kills a process that does not exit in time."""
    for process in processes:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
