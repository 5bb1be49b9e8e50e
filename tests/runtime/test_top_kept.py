# SPDX-License-Identifier: Apache-2.0
"""Saved settings of cudatop's screen: settings changed with keys are loaded by the next run; untrusted files are not
used."""
import json
import os
import re
import tempfile

import harness
from harness import check, equal
from test_top_screen import Screen, lasting_workload
from tops import case


class Settings:
    """A separate folder of settings."""

    def __init__(self):
        self.folder = harness.pathlib.Path(tempfile.mkdtemp(dir=harness.here))
        self.file = self.folder / "gpusnoop/cudatop.json"

    def write(self, text):
        self.file.parent.mkdir(mode=0o700, exist_ok=True)
        self.file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def screen(self, workload, *arguments, interval=None, **options):
        return Screen("-p", workload.pid, *arguments, interval=interval, XDG_CONFIG_HOME=str(self.folder), **options)


def headers(screen):
    line = next(line for line in screen.lines() if re.search(r"\bCOMM\b.*LAUNCH/s", line))
    return line.split()


@case(asan=True)
def changed_by_keys():
    workload, do = lasting_workload("launch vecadd 10")
    settings = Settings()
    with settings.screen(workload) as screen:
        do()
        screen.wait_for("every 1.0s")
        screen.quit()
    check(not settings.file.exists(), "nothing was changed, but a file was saved")
    with settings.screen(workload, "-s", "MEM") as screen:
        screen.wait_for("every 1.0s")
        screen.keys("2", "+", "t", "c", "Space", "Enter")
        screen.wait_for(lambda text: "by thread" in text and "every 2.0s" in text, "the changed settings")
        screen.quit()
    kept = json.loads(settings.file.read_text())
    equal({key: kept[key] for key in kept if key != "columns"},
          {"by": "thread", "interval_seconds": 2.0, "tree": True, "hidden_columns": ["pid"]}, "saved settings")
    check("comm" in kept["columns"] and "pid" not in kept["columns"], f"unexpected saved columns: {kept}")
    equal(os.stat(settings.file).st_mode & 0o7777, 0o600, "permissions")
    equal([file.name for file in settings.file.parent.iterdir()], ["cudatop.json"], "files in the folder")

    with settings.screen(workload, by="thread") as screen:
        screen.wait_for("every 2.0s")
        screen.wait_for(lambda text: re.search(r"\bCOMM\b.*LAUNCH/s", text), "the headers")
        check("PID" not in headers(screen), f"the hidden column is shown: {headers(screen)}")
        screen.keys("s", "End", "Enter")
        screen.wait_for(lambda text: re.search(r"\bCOMM\b.*LAUNCH/s", text), "the list")
        screen.quit()
    kept = json.loads(settings.file.read_text())
    check(kept["by"] == "thread" and kept["sort"], f"earlier changes were not saved: {kept}")

    with settings.screen(workload, "--by", "pid", "-i", "5", "-s", "COPY/s", "--columns", "PID,COMM,LAUNCH/s,COPY/s") as screen:
        screen.wait_for("every 5.0s")
        screen.wait_for(lambda text: re.search(r"\bPID\b.*LAUNCH/s", text), "the headers")
        equal([name.strip("▼") for name in headers(screen)], ["PID", "COMM", "LAUNCH/s", "COPY/s"], "columns")
        check("▼COPY/s" in headers(screen), f"unexpected order: {headers(screen)}")
        screen.quit()
    equal(json.loads(settings.file.read_text()), kept, "options are not saved")

    before = settings.file.read_bytes()
    with settings.screen(workload, "--no-config") as screen:
        screen.wait_for("every 1.0s")
        screen.keys("t", "2")
        screen.wait_for("by thread")
        screen.quit()
    equal(settings.file.read_bytes(), before, "--no-config saves nothing")
    workload.stop()


def fifo(settings):
    os.mkfifo(settings.file)
    return "is not a regular file"


def link(settings):
    elsewhere = settings.folder / "elsewhere"
    elsewhere.write_text("{}")
    settings.file.symlink_to(elsewhere)
    return "is a symbolic link"


def another_users_file(settings):
    settings.write('{"tree": true}')
    os.chown(settings.file, 1, 1)
    return "belongs to another user"


def another_users_folder(settings):
    os.chown(settings.folder, 1, 1)
    return "belongs to another user"


def world_writable_folder(settings):
    settings.file.parent.chmod(0o777)
    return "can be written by others"


def written(text, why):
    def write(settings):
        settings.write(text)
        return why
    return write


@case(each={
    "fifo": fifo, "link": link, "another_users_file": another_users_file, "another_users_folder": another_users_folder,
    "world_writable_folder": world_writable_folder, "huge": written(b" " * (1 << 20), "is larger than 64K"),
    "deep": written("[" * 60000, "it is not a JSON object"), "not_utf8": written(b'{"by": "\xff"}', "it is not a JSON object"),
    "wrong_type": written('{"tree": "yes"}', "of the wrong type"),
    "no_such_column": written('{"columns": ["\\u001b[2Jnone"]}', r"there is no column '\x1B[2Jnone'"),
    "no_such_rows": written('{"by": "pids"}', "rows cannot be grouped by 'pids'")})
def untrusted_files(make):
    workload, do = lasting_workload("launch vecadd 10")
    settings = Settings()
    settings.file.parent.mkdir(mode=0o700)
    why = make(settings)
    files = lambda: [(str(path), os.lstat(path)) for path in sorted(settings.folder.rglob("*"))]
    before = files()
    with settings.screen(workload) as screen:
        do()
        screen.wait_for("screen settings are neither loaded nor saved")
        screen.keys("m")
        screen.wait_for(why)
        screen.keys("Escape", "t", "2")
        screen.wait_for("by thread")
        screen.quit()
    without_access_time = lambda some: [(path, stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime_ns) for path, stat in some]
    equal(without_access_time(files()), without_access_time(before), "files and folders")
    workload.stop()
