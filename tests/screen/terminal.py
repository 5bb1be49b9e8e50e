# SPDX-License-Identifier: Apache-2.0
"""Terminal for tests: runs a program in tmux, on a private server."""
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import time

available = shutil.which("tmux") is not None
patience = 60  # seconds to wait for an expected state


class Terminal:
    """Runs the command (a list of words) in a shell, which stays open after the command has exited."""

    def __init__(self, command, columns=80, lines=24, term=None, **environment):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpusnoop-terminal-"))
        self.socket = self.folder / "tmux"
        self.before = self.folder / "stty-before"
        self.after = self.folder / "stty-after"
        self.status = self.folder / "status"
        self.command = shlex.join(map(str, command))
        setting = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "XDG_CONFIG_HOME": str(self.folder), **environment}
        if term:
            setting["TERM"] = term
        script = self.folder / "script"
        variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in setting.items())
        script.write_text(f"stty -a > {self.before}\n"
                          f"env {variables} {self.command}\n"
                          f"status=$?; stty -a > {self.after}; echo $status > {self.status}.part\n"
                          f"mv {self.status}.part {self.status}; echo back in the shell\n"
                          "cat\n")
        # -m: job control, so that the program has its own process group, as in an interactive shell.
        self.tmux("-f", "/dev/null", "-u", "new-session", "-d", "-x", str(columns), "-y", str(lines),
                  f"bash --norc -m {script}")

    def tmux(self, *arguments, check=True):
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        environment.pop("TMUX", None)
        return subprocess.run(["tmux", "-S", self.socket, *arguments], check=check, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", env=environment).stdout

    def keys(self, *keys):
        """Sends keys by their tmux names: "Down", "Enter", "C-z", "q"."""
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def text(self, escapes=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if escapes else []), check=False)

    def lines(self):
        return self.text().split("\n")

    def format(self, name):
        """Value of a tmux variable, such as "cursor_flag" or "alternate_on"."""
        return self.tmux("display-message", "-p", f"#{{{name}}}", check=False).strip()

    def pid(self):
        """The program's process id; None if it has exited."""
        shell = self.format("pane_pid")
        children = pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        return int(children[-1]) if children else None

    def wait_for(self, wanted, description=""):
        """Waits until the screen contains a text, or until wanted(text of the screen) is true; returns its result."""
        until = time.monotonic() + patience
        while True:
            text = self.text()
            found = wanted in text if isinstance(wanted, str) else wanted(text)
            if found:
                return found
            if time.monotonic() > until:
                raise AssertionError(f"timed out waiting for: {description or wanted}; the screen shows:\n{text}")
            time.sleep(0.05)

    def resize(self, columns, lines):
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def exit_status(self):
        """Waits until the program exits; returns its exit status."""
        self.wait_for(lambda _: self.status.exists(), f"exit of {self.command}")
        return int(self.status.read_text())

    def stop(self):
        self.tmux("kill-server", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
