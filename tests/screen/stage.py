# SPDX-License-Identifier: Apache-2.0
"""Helpers of the cases: start build/screen/play, read its log of requests, and parse its screen."""
import os
import pathlib
import re
import tempfile

import terminal

play = pathlib.Path(os.environ.get("BUILD", pathlib.Path(__file__).resolve().parents[2] / "build")).resolve() / "screen/play"
folder = pathlib.Path(tempfile.mkdtemp(prefix="gpusnoop-screen-"))
log = folder / "log"
cases = []


def case(function):
    cases.append(function)
    return function


def start(*arguments, **settings):
    log.write_text("")
    return terminal.Terminal([play, *arguments], PLAY_LOG=str(log), **settings)


def logged():
    return log.read_text().split("\n")


def pids(text):
    """Process ids of the rows, from top to bottom."""
    return [int(found) for found in re.findall(r"^(?: |[├└]─) *(\d{4}) ", text, re.M)]


def equal(found, expected):
    assert found == expected, f"got {found!r}, expected {expected!r}"


def restored(screen):
    """Checks that the terminal has the same modes as before the program started."""
    equal(screen.after.read_text(), screen.before.read_text())
    screen.wait_for("back in the shell")
    screen.wait_for(lambda _: screen.format("alternate_on") == "0", "the shell's screen")
    equal(screen.format("cursor_flag"), "1")
    equal(screen.format("keypad_cursor_flag"), "0")
