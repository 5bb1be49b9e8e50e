# SPDX-License-Identifier: Apache-2.0
"""Sizes, colours, locales, and terminals with few capabilities."""
import re
import subprocess

from stage import case, equal, folder, pids, play, restored, start


@case
def resize_storm():
    with start("--rows", "60", "--gpus", "8", "--every", "0.1") as screen:
        screen.wait_for("1059")
        screen.keys("PageDown")
        sizes = [(1, 1), (80, 24), (2, 1), (1, 50), (200, 1), (40, 10), (3, 3), (200, 50), (10, 2), (1, 1)]
        for _ in range(5):
            for columns, lines in sizes:
                screen.resize(columns, lines)
        screen.keys("Enter", "Escape", "?", "Escape")
        for columns, lines in reversed(sizes):
            screen.resize(columns, lines)
        screen.resize(80, 24)
        screen.wait_for(lambda text: "cudatop 10:" in text and len(pids(text)) > 5, "the screen again")
        screen.keys("Home")
        screen.wait_for("1059")
        screen.wait_for(lambda text: "Help" in text.split("\n")[23], "the footer at the bottom")
        screen.keys("q")
        equal(screen.exit_status(), 0)
        restored(screen)


def shown_by(term, **environment):
    with start(term=term, **environment) as screen:
        screen.wait_for("1005")
        screen.wait_for("GPU0")
        raw = screen.text(escapes=True)
        screen.keys("Down", "Enter")
        screen.wait_for("kernels of 1004")
        screen.keys("Escape", "q")
        equal(screen.exit_status(), 0)
        restored(screen)
        return raw


colour = re.compile(r"\x1b\[[0-9;]*(3[0-7]|4[0-7]|9[0-7]|38;5)[0-9;]*m")


@case
def eight_colours():
    for term in "xterm", "screen", "linux":
        raw = shown_by(term)
        assert colour.search(raw), f"{term}: no colours in {raw!r}"
        assert not re.search(r"38;5;|48;5;|\x1b\[9[0-7]m", raw), f"{term}: more than eight colours in {raw!r}"


@case
def no_colours():
    assert not colour.search(shown_by("screen-256color", NO_COLOR="1")), "colours in spite of NO_COLOR"
    assert not colour.search(shown_by("vt100")), "colours on a vt100"
    assert colour.search(shown_by("screen-256color", NO_COLOR="")), "no colours with an empty NO_COLOR, which must have no effect"


@case
def theme():
    with start() as screen:
        screen.wait_for("1005")
        screen.wait_for(lambda _: colour.search(screen.text(escapes=True)), "colours")
        screen.keys("z")
        screen.wait_for(lambda _: not colour.search(screen.text(escapes=True)), "no colours")


@case
def not_utf8():
    with start(LC_ALL="C") as screen:
        screen.wait_for("1005")
        screen.wait_for("???")
        screen.keys("Down", "Enter")
        screen.wait_for("LAUNCH/s now")
        screen.wait_for(lambda text: "::" in text and "⣿" not in text, "a plot in ASCII")
        assert screen.text().isascii(), screen.text()


@case
def unknown_locale():
    with start(LC_ALL="xx_YY.UTF-8") as screen:
        screen.wait_for("訓練器")


@case
def unusable_terminals():
    for term, why in ("dumb", "cannot position its cursor"), ("no-such-terminal", "is not known on this machine"):
        with start(term=term) as screen:
            equal(screen.exit_status(), 1)
            screen.wait_for(lambda text, why=why: why in " ".join(text.split()), why)
            screen.wait_for("hint: ")
            restored(screen)
    result = subprocess.run([play], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    equal(result.returncode, 1)
    assert "there is no terminal to draw on" in result.stderr, result.stderr
    equal(result.stdout, "")


@case
def writes_nothing_while_paused():
    with start("--every", "0.1", "--rows", "200") as screen:
        screen.wait_for("1199")
        written = folder / "written"
        screen.tmux("pipe-pane", f"cat > {written}")
        screen.wait_for(lambda _: written.exists() and written.stat().st_size > 0, "output of an interval")
        screen.keys("Space")
        screen.wait_for("PAUSED")
        sizes = []

        def is_constant(_):
            sizes.append(written.stat().st_size)
            return len(sizes) > 20 and len(set(sizes[-20:])) == 1  # constant for several intervals

        screen.wait_for(is_constant, "no more output")
