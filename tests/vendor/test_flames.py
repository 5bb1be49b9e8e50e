# SPDX-License-Identifier: Apache-2.0
"""Flame graphs read by Chromium, Go's pprof, speedscope's schema and flamegraph.pl, as far as these are installed.
Covers names that look like markup, search, and zoom."""
import html
import json
import pathlib
import re
import shutil
import subprocess

import harness
import vendor
from harness import Skip, case, check, equal
from programs import Tool, Workload

# Simulates a user who clicks and searches in the SVG, and records what is visible after each action.
script = """<script><![CDATA[
const shown = () => Array.from(document.querySelectorAll('.f')).filter(g => g.style.display !== 'none');
const at = id => document.getElementById(id);
const result = {frames: shown().length, markup: document.querySelectorAll('b').length};
shown().find(g => g.querySelector('title').textContent.startsWith('saxpy'))
  .dispatchEvent(new MouseEvent('click', {bubbles: true}));
result.zoomed = shown().length, result.reset = at('reset').style.visibility;
at('reset').dispatchEvent(new MouseEvent('click', {bubbles: true}));
result.back = shown().length;
at('what').value = 'VECADD';
at('what').dispatchEvent(new Event('input', {bubbles: true}));
result.found = document.querySelectorAll('.found').length, result.share = at('share').textContent;
document.documentElement.setAttribute('data-result', JSON.stringify(result));
]]></script></svg>"""


def drawn(*arguments, name="<b>'&\"", **options):
    workload = Workload("launch vecadd 300; launch saxpy 100", name=name)
    tool = Tool("-p", workload.pid, *arguments, **options)
    workload.go().wait()
    return tool.finish()


@case
def in_a_browser():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        raise Skip("chromium is not installed")
    picture = harness.here / "flames.svg"
    drawn("--svg", picture)
    text = picture.read_text()
    used = harness.here / "used.svg"
    used.write_text(text[:text.rindex("</svg>")] + script)
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={harness.here / 'profile'}",
                           "--dump-dom", f"file://{used}"], capture_output=True, text=True, timeout=120)
    found = re.search(r'data-result="([^"]*)"', done.stdout)
    check(found, f"{done.stdout[:2000]} {done.stderr[-2000:]}")
    result = json.loads(html.unescape(found[1]))
    equal((result["markup"], result["reset"], result["back"], result["share"]), (0, "visible", result["frames"], "75.00% found"), f"{result}")
    check(result["zoomed"] < result["frames"] and result["found"] >= 1, f"{result}")


@case
def by_pprof():
    go = shutil.which("go") or next((str(path) for path in pathlib.Path("/usr/lib").glob("go-*/bin/go")), None)
    if not go:
        raise Skip("go is not installed")
    profile = harness.here / "launches.pb.gz"
    drawn("--pprof", profile)
    done = subprocess.run([go, "tool", "pprof", "-top", profile], capture_output=True, text=True, env={"HOME": str(harness.here), "PATH": "/usr/bin:/bin"})
    equal(done.returncode, 0, done.stderr)
    flat = {line.split()[-1]: int(line.split()[0]) for line in done.stdout.splitlines() if re.match(r" *\d+ ", line)}
    equal((flat["vecadd"], flat["saxpy"]), (300, 100), done.stdout)


@case
def by_the_schema_of_speedscope():
    packages = vendor.npm("speedscope", "speedscope's schema")
    profile = harness.here / "launches.speedscope.json"
    drawn("--speedscope", profile)
    validate = ["node", pathlib.Path(__file__).with_name("speedscope.mjs"), packages]
    for change, errors in ((lambda text: text, 0), (lambda text: text.replace('"unit"', '"colour"'), 1)):
        profile.write_text(change(profile.read_text()))
        done = subprocess.run([*validate, profile], capture_output=True, text=True, timeout=60)
        equal((done.returncode, bool(done.stdout)), (0, bool(errors)), done.stderr + done.stdout)


@case
def by_flamegraph_pl():
    flamegraph = shutil.which("flamegraph.pl")
    if not flamegraph:
        raise Skip("flamegraph.pl is not in PATH")
    tool = drawn("--folded", name="a b", json=False)
    done = subprocess.run([flamegraph, "--minwidth", "0"], input=tool.text, capture_output=True, text=True, timeout=60)
    equal((done.returncode, done.stderr), (0, ""), f"flamegraph.pl on {tool.text}")
    titles = dict(re.findall(r"<title>(\w+)[^<]*? \((\d+) samples", done.stdout))
    equal((titles.get("vecadd"), titles.get("saxpy")), ("300", "100"), f"{titles} of {tool.text}")
