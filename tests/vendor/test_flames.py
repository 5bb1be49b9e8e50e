# SPDX-License-Identifier: Apache-2.0
"""Flame graphs, as Chromium shows them and Go's pprof reads them, where those are installed: a name that would like to be
markup, a search, a zoom."""
import html
import json
import pathlib
import re
import shutil
import subprocess

import harness
from harness import Skip, case, check, equal
from programs import Tool, Workload

# What somebody does with the picture, and what there is to see then.
script = """<script><![CDATA[
const shown = () => Array.from(document.querySelectorAll('.f')).filter(g => g.style.display !== 'none');
const at = id => document.getElementById(id);
const said = {frames: shown().length, markup: document.querySelectorAll('b').length};
shown().find(g => g.querySelector('title').textContent.startsWith('saxpy'))
  .dispatchEvent(new MouseEvent('click', {bubbles: true}));
said.zoomed = shown().length, said.reset = at('reset').style.visibility;
at('reset').dispatchEvent(new MouseEvent('click', {bubbles: true}));
said.back = shown().length;
at('what').value = 'VECADD';
at('what').dispatchEvent(new Event('input', {bubbles: true}));
said.found = document.querySelectorAll('.found').length, said.share = at('share').textContent;
document.documentElement.setAttribute('data-said', JSON.stringify(said));
]]></script></svg>"""


def drawn(*arguments):
    workload = Workload("launch vecadd 300; launch saxpy 100", name="<b>'&\"")
    tool = Tool("-p", workload.pid, *arguments)
    workload.go().wait()
    tool.finish()


@case
def in_a_browser():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        raise Skip("no chromium")
    picture = harness.here / "flames.svg"
    drawn("--svg", picture)
    text = picture.read_text()
    used = harness.here / "used.svg"
    used.write_text(text[:text.rindex("</svg>")] + script)
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={harness.here / 'profile'}",
                           "--dump-dom", f"file://{used}"], capture_output=True, text=True, timeout=120)
    found = re.search(r'data-said="([^"]*)"', done.stdout)
    check(found, f"{done.stdout[:2000]} {done.stderr[-2000:]}")
    said = json.loads(html.unescape(found[1]))
    equal((said["markup"], said["reset"], said["back"], said["share"]), (0, "visible", said["frames"], "75.00% found"), f"{said}")
    check(said["zoomed"] < said["frames"] and said["found"] >= 1, f"{said}")


@case
def by_pprof():
    go = shutil.which("go") or next((str(path) for path in pathlib.Path("/usr/lib").glob("go-*/bin/go")), None)
    if not go:
        raise Skip("no go")
    profile = harness.here / "launches.pb.gz"
    drawn("--pprof", profile)
    done = subprocess.run([go, "tool", "pprof", "-top", profile], capture_output=True, text=True, env={"HOME": str(harness.here), "PATH": "/usr/bin:/bin"})
    equal(done.returncode, 0, done.stderr)
    flat = {line.split()[-1]: int(line.split()[0]) for line in done.stdout.splitlines() if re.match(r" *\d+ ", line)}
    equal((flat["vecadd"], flat["saxpy"]), (300, 100), done.stdout)
