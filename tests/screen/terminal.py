# SPDX-License-Identifier: Apache-2.0
"""A real terminal to run a program in: tmux, with a server of its own, seen by nobody."""
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import time

available = shutil.which("tmux") is not None
patience = float(os.environ.get("SCREEN_PATIENCE", 60))  # seconds; a shared machine can be slow


class Terminal:
    """Terminal(command): runs it by a shell, which stays behind for what comes after it."""

    def __init__(self, command, columns=80, lines=24, term=None, **environment):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpusnoop-terminal-"))
        self.socket = self.folder / "tmux"
        self.before = self.folder / "stty-before"
        self.after = self.folder / "stty-after"
        self.status = self.folder / "status"
        self.command = command
        setting = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "XDG_CONFIG_HOME": str(self.folder), **environment}
        if term:
            setting["TERM"] = term
        script = self.folder / "script"
        variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in setting.items())
        script.write_text(f"stty -a > {self.before}\n"
                          f"env {variables} {command}\n"
                          f"status=$?; stty -a > {self.after}; echo $status > {self.status}.part\n"
                          f"mv {self.status}.part {self.status}; echo back in the shell\n"
                          "cat\n")
        # With job control, as an interactive shell has it: the program gets a process group of its own.
        self.tmux("-f", "/dev/null", "-u", "new-session", "-d", "-x", str(columns), "-y", str(lines),
                  f"bash --norc -m {script}")

    def tmux(self, *arguments, check=True):
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        environment.pop("TMUX", None)
        return subprocess.run(["tmux", "-S", self.socket, *arguments], check=check, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", env=environment).stdout

    def keys(self, *keys):
        """As tmux names them: "Down", "Enter", "C-z", "q"."""
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def text(self, escapes=False):
        return self.tmux("capture-pane", "-p", *(["-e"] if escapes else []), check=False)

    def lines(self):
        return self.text().split("\n")

    def format(self, name):
        """A variable of tmux: "cursor_flag", "alternate_on"."""
        return self.tmux("display-message", "-p", f"#{{{name}}}", check=False).strip()

    def pid(self):
        """Of the program, which is the shell's child."""
        shell = self.format("pane_pid")
        children = pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        return int(children[-1]) if children else None

    def wait_for(self, what, why=""):
        """Waits until a text is seen, or until a function of the text returns something; returns that."""
        until = time.monotonic() + patience
        while True:
            text = self.text()
            found = what in text if isinstance(what, str) else what(text)
            if found:
                return found
            if time.monotonic() > until:
                raise AssertionError(f"{why or what} is not seen on:\n{text}")
            time.sleep(0.05)

    def resize(self, columns, lines):
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def ended(self):
        """Waits for the end of the program; its exit status."""
        self.wait_for(lambda _: self.status.exists(), f"the end of {self.command}")
        return int(self.status.read_text())

    def stop(self):
        self.tmux("kill-server", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
