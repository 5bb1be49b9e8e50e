# SPDX-License-Identifier: Apache-2.0
"""Keys and mouse in the list, and the requests that they send."""
import json
import re

from stage import case, equal, folder, logged, pids, restored, start


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


@case
def sort_orders():
    with start() as screen:
        screen.wait_for("1005")
        screen.keys("r")
        screen.wait_for(lambda text: pids(text) == [1000, 1001, 1002, 1003, 1004, 1005], "the reversed order")
        screen.keys(">", ">")  # sorts by H2D/s, the largest value first
        screen.wait_for(lambda text: pids(text) == [1000, 1001, 1002, 1003, 1004, 1005], "the order by H2D/s")
        screen.keys(">")
        screen.wait_for(lambda text: pids(text) == [1005, 1004, 1003, 1002, 1001, 1000], "the order by D2H/s")
        screen.keys("s", "Home", "Enter")  # sorts by PID
        screen.keys("r")
        screen.wait_for(lambda text: pids(text) == [1000, 1001, 1002, 1003, 1004, 1005], "the order by PID")


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
def filter_and_search():
    with start() as screen:
        screen.wait_for("1005")
        screen.type("/train")
        screen.wait_for("Filter: train_")
        screen.wait_for(lambda text: pids(text) == [1000], "the filtered row")
        screen.keys("BSpace", "Enter")
        screen.wait_for("Filter: trai (Esc clears)")
        screen.keys("Escape")
        screen.wait_for(lambda text: len(pids(text)) == 6, "all rows")
        screen.type("\\leaker")
        screen.keys("Enter", "Enter")
        screen.wait_for(lambda _: "open 1002" in logged(), "the row that was searched")


@case
def drill_down():
    with start() as screen:
        screen.wait_for("1005")
        screen.keys("Down", "Enter")
        screen.wait_for("kernels of 1004")
        screen.wait_for("|****************************************|")
        screen.wait_for("LAUNCH/s now 500.0")
        screen.wait_for(lambda text: "⣿" in text, "a plot in braille")
        screen.keys("Right")
        screen.wait_for("GRAPH/s now -")
        screen.keys("?")
        screen.wait_for("select a row")
        screen.keys("Escape")
        screen.wait_for("kernels of 1004")
        screen.keys("Escape")
        screen.wait_for(lambda _: "open " in logged(), "the row closed")
        screen.wait_for(lambda text: len(pids(text)) == 6, "the list")


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
def by_interval_and_tree():
    with start() as screen:
        screen.wait_for("1005")
        screen.keys("+")
        screen.wait_for(lambda _: "interval 2000000000" in logged(), "the request")
        screen.keys("d")
        screen.type("0.25")
        screen.keys("Enter")
        screen.wait_for(lambda _: "interval 250000000" in logged(), "the request")
        screen.keys("4")
        screen.wait_for(lambda _: "by pod" in logged(), "the request")
        screen.wait_for("by pod")
        screen.keys("t")
        screen.wait_for(lambda text: "\n- pod-1 (2) " in text and "\n- (none) (2) " in text, "headings")
        equal(pids(screen.text()), [1004, 1001, 1003, 1000, 1005, 1002])


@case
def columns():
    with start() as screen:
        screen.wait_for("1005")
        assert "POD" not in screen.text()
        screen.keys("c")
        screen.wait_for("[ ] POD")
        screen.keys("End", "Up", "Space", "Home", "Space", "Enter")
        screen.wait_for(lambda text: "PID" not in text, "no PID")
        screen.keys("Right", "Right", "Right", "Right", "Right", "Right", "Right", "Right", "Right", "Right", "Right")
        screen.wait_for("POD")
        screen.wait_for("SM%*")
        screen.wait_for(lambda text: "trainer" in text, "the columns that stay")


@case
def saved():
    with start() as screen:
        screen.wait_for("1005")
        for name in "screen.txt", "screen.json":
            screen.keys("w", "C-u")
            screen.type(str(folder / name))
            screen.keys("Enter")
            screen.wait_for(lambda _, name=name: (folder / name).exists() and (folder / name).stat().st_size, name)
        rows = [json.loads(line) for line in (folder / "screen.json").read_text().splitlines()]
        equal([row["pid"] for row in rows], [1005, 1004, 1003, 1002, 1001, 1000])
        equal(rows[5]["launches_per_second"], 100)
        equal(pids((folder / "screen.txt").read_text()), [1005, 1004, 1003, 1002, 1001, 1000])
        equal((folder / "screen.txt").stat().st_mode & 0o777, 0o600)
        screen.keys("w", "C-u")
        screen.type(str(folder / "screen.txt"))
        screen.keys("Enter")
        screen.keys("m")
        screen.wait_for(lambda text: "cannotbewritten:File" in "".join(text.split()), "the reason why it is not saved")


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
