# SPDX-License-Identifier: Apache-2.0
import signal
import subprocess


def end(processes):
    """As Ctrl-C does, one after the other; what does not heed it is killed. Those that have ended are left alone."""
    for process in processes:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
