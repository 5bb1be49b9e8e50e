# SPDX-License-Identifier: Apache-2.0
"""cudatop's metrics for Prometheus, in a file and over HTTP, equal what the workloads did."""
import re
import urllib.error
import urllib.request

import harness
from containers import Cgroup, Container, HostRoot, Image, Name, kubepods
from harness import check, equal, wait_until
from tops import Tool, case

script = "name {name}; launch vecadd {launches}; copy {copies} bytes=100000; sync 7; alloc a {bytes}; touch {dir}/{name}; " \
         "wait {dir}/end; launch vecadd 1; sleep 300; launch saxpy 1"


def series(page):
    """{(family, labels as a tuple): value}. Each line must be valid in the text format."""
    found = {}
    for line in page.splitlines():
        if line.startswith("#"):
            check(re.fullmatch(r"# (HELP gpusnoop_\w+ \S.*|TYPE gpusnoop_\w+ (counter|gauge))", line), line)
            continue
        name, labels, value = re.fullmatch(r'gpusnoop_(\w+?)(?:\{(.*)\})? (\S+)', line).groups()
        key = name, tuple(sorted(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")))
        check(key not in found, f"a duplicate series: {line}")
        found[key] = float(value)
    return found


@case(asan=True, alone=True)
def pods():
    """Two containers of one pod and one of another: metrics while they run, and after they exit."""
    host, first, other, image = HostRoot(), Name(), Name(), Image()
    second = Name(pod=first.pod, namespace=first.namespace, pod_uid=first.pod_uid)
    workloads = []
    for i, name in enumerate((first, second, other), 1):
        host.kubelet(name)
        words = {"{name}": f"w{i}", "{launches}": str(100 * i), "{copies}": str(3 * i), "{bytes}": str(4096 * i)}
        mine = script
        for word, value in words.items():
            mine = mine.replace(word, value)
        workloads.append(Container(mine, cgroups=[Cgroup("v2", kubepods(name))], image=image))
    file = harness.here / "gpusnoop.prom"
    tool = Tool("--host-root", host.path, "--listen", "0", "--textfile", file, "-i", "0.3", json=False,
                preexec=host.enter)
    address = wait_until(lambda: re.search(r"http://127\.0\.0\.1:\d+", tool.error), "an address")[0]

    def page(path="/metrics"):
        with urllib.request.urlopen(address + path, timeout=30 * harness.patience) as answer:
            return answer.read().decode()

    def figure(family, name, **more):
        labels = {"namespace": name.namespace, "pod": name.pod, "container": name.container} | more
        return series(page()).get((family, tuple(sorted(labels.items()))))

    for workload in workloads:
        workload.go()
    for i, name in enumerate((first, second, other), 1):
        # Copies allocate memory, too, in multiples of 256 MiB.
        wait_until(lambda: (figure("live_bytes", name) or 0) % (1 << 28) == 4096 * i, f"memory of {name.container}: {tool.error}")
        equal(figure("kernel_launches_total", name), 100 * i, "launches")
        equal(figure("copy_bytes_total", name, direction="h2d"), 300_000 * i, "bytes")
    equal(series(file.read_text()).keys(), series(page()).keys(), "series in the file")
    equal(file.stat().st_mode & 0o777, 0o644, "permissions: node_exporter must read the file")
    equal(page("/healthz"), "ok\n", "healthz")
    try:
        page("/passwd")
        raise harness.Failure("/passwd is answered")
    except urllib.error.HTTPError as error:
        equal(error.code, 404, "another path")
    (harness.here / "end").touch()
    for workload in workloads:
        workload.wait()
    for i, name in enumerate((first, second, other), 1):
        wait_until(lambda: figure("live_bytes", name) is None, "no memory after the exit")
        equal(figure("kernel_launches_total", name), 100 * i + 2, "launches after the exit")
        check(figure("sync_waits_total", name) >= 7, "too few waits")
    equal(series(page())["lost_events_total", ()], 0, "losses")
    tool.stop()
    check(not file.exists(), "the file still exists after the run")
    equal(tool.text, "", "standard output")


@case(each={"file": (["--textfile", "/tmp/x"], 2), "address": (["--listen", "nowhere:1"], 2),
            "folder": (["--textfile", "/nowhere/x.prom"], 1)})
def refused_options(which):
    words, code = which
    tool = Tool(*words, json=False, banner=False, attaches=False).finish(code=code)
    check("--listen" in tool.error or "--textfile" in tool.error or "cannot be written" in tool.error, tool.error)
