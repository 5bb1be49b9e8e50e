# SPDX-License-Identifier: Apache-2.0
"""Keys and mouse in the list, and the requests that they send. tests/unit/screen has the effects of all keys."""
import re

from stage import case, equal, logged, pids, restored, start


def clock(text):
    """The time of day on the first line, or an empty string."""
    found = re.search(r"10:\d\d:\d\d", text)
    return found.group() if found else ""


@case
def first_screen():
    with start() as screen:
        screen.wait_for("evil\\x1B[31m\\x+")
        screen.wait_for("訓練器")
        equal(pids(screen.text()), [1005, 1004, 1003, 1002, 1001, 1000])
        screen.wait_for(lambda text: clock(text) >= "10:00:02", "a later interval")
        screen.keys("m")
        screen.wait_for("a warning with \\x1B[2J in it")
        screen.keys("Escape", "q")
        equal(screen.exit_status(), 0)
        restored(screen)
        assert "quit" in logged()


def click(screen, text):
    """Sends a click in X10 encoding: button + 32, column + 33, line + 33."""
    y, line = next((y, line) for y, line in enumerate(screen.lines()) if text in line)
    for button in "20", "23":  # pressed, released
        screen.tmux("send-keys", "-H", "1b", "5b", "4d", button, f"{line.index(text) + 33:x}", f"{y + 33:x}")


@case
def mouse():
    with start() as screen:
        screen.wait_for("1005")
        equal(screen.format("mouse_any_flag"), "1")
        click(screen, "PID")
        screen.wait_for(lambda text: pids(text) == [1005, 1004, 1003, 1002, 1001, 1000], "the order by PID")
        click(screen, "PID")
        screen.wait_for(lambda text: pids(text) == [1000, 1001, 1002, 1003, 1004, 1005], "the reversed order")
        click(screen, "1002")
        click(screen, "1002")
        screen.wait_for(lambda _: "open 1002" in logged(), "the row that was clicked")
        screen.keys("M")
        screen.wait_for(lambda _: screen.format("mouse_any_flag") == "0", "the mouse is off")
        screen.keys("M", "F10")
        equal(screen.exit_status(), 0)
        equal(screen.format("mouse_any_flag"), "0")
        restored(screen)


@case
def pause():
    with start("--every", "0.1") as screen:
        screen.wait_for(lambda text: clock(text) >= "10:00:05", "figures")
        screen.keys("Space")
        screen.wait_for("PAUSED")
        paused_at = clock(screen.text())
        screen.keys("+")  # requests and shows the new interval even if paused
        screen.wait_for("every 2.0s")
        assert "interval 2000000000" in logged()
        equal(clock(screen.text()), paused_at)
        screen.keys("Space")
        screen.wait_for(lambda text: clock(text) > paused_at, "newer figures")


@case
def keys_of_other_terminals():
    with start(term="xterm") as screen:
        screen.wait_for("1005")
        screen.keys("End")
        screen.keys("Enter")
        screen.wait_for(lambda _: "open 1000" in logged(), "End")
        screen.keys("Escape")
        screen.wait_for(lambda text: len(pids(text)) == 6, "the list")
        screen.tmux("send-keys", "-H", "1b", "5b", "32", "3b", "39", "7e")  # CSI 2;9~: an unknown key
        screen.keys("Home", "Enter")
        screen.wait_for(lambda _: "open 1005" in logged(), "Home")
        assert "by thread" not in logged()


@case
def warnings_of_the_library():
    with start("--crash", "warn") as screen:
        screen.wait_for("1005")
        screen.keys("End", "Enter")
        screen.keys("m")
        screen.wait_for("a \\x1B[2Jwarning of the library")
