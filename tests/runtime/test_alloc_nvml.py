# SPDX-License-Identifier: Apache-2.0
"""gpualloc with NVML: memory of a process according to the driver, next to traced allocations."""
import os

import harness
from harness import all_but, check, equal, wait_until
from memory import case
from programs import Tool, Workload
from test_alloc_ends import newest
from test_refusals import refused

library = "nvml/libnvidia-ml.so.1"
mib = 1 << 20


class Nvml:
    """Answers of the stand-in NVML."""

    def __init__(self, *lines, name="nvml"):
        self.path = harness.here / name
        self.answer(*lines)

    def answer(self, *lines):
        """Replaces the answers atomically, since the tool may read them at any time."""
        new = self.path.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n")
        os.rename(new, self.path)

    def tool(self, *arguments, **options):
        return Tool(*arguments, "--nvml", harness.standin / library, env={"STANDIN_NVML": str(self.path)}, **options)


def holder(size=10 * mib, **options):
    return Workload(f"alloc a {size}; touch {{dir}}/held; wait {{dir}}/end", **options)


def figures(row):
    return row.get("nvml_bytes"), row.get("before_attach_and_context_bytes")


def shown(tool, pid, want):
    """Waits for a row of this process with these figures."""
    def found():
        return [row for row in newest(tool) if row["pid"] == pid and figures(row) == want and row["live_allocations"]]
    try:
        return wait_until(found, "figures from NVML", 10)[0]
    except harness.Failure:
        raise harness.Failure(f"{tool}: want {want}: {[figures(row) for row in tool.rows if row['pid'] == pid][-5:]}") from None


def end(*workloads):
    (harness.here / "end").touch()
    for workload in workloads:
        workload.wait()


@case(asan=True)
def per_process():
    """Rows show the memory that NVML currently reports for the process, or nothing if NVML does not list it or its
    bytes."""
    a, b = holder(), holder(300)
    nvml = Nvml("device 0", "device 1", f"process {a.pid} {100 * mib}", f"process {b.pid} unknown")
    tool = nvml.tool("-p", f"{a.pid},{b.pid}", "-i", "0.2")
    for workload in a, b:
        workload.go()
    shown(tool, a.pid, (100 * mib, 90 * mib))
    shown(tool, b.pid, (None, None))
    nvml.answer("device 0", f"process {a.pid} {50 * mib}", f"process {b.pid} 1000")
    shown(tool, a.pid, (50 * mib, 40 * mib))
    shown(tool, b.pid, (1000, 700))
    nvml.answer("device 0", f"process {a.pid} {2 * mib}")  # less than was traced: NVML's value may be outdated
    shown(tool, a.pid, (2 * mib, -8 * mib))
    shown(tool, b.pid, (None, None))
    nvml.answer("device 0", f"process {a.pid} {20 * mib}", "device 1", f"process {a.pid} {7 * mib}")
    shown(tool, a.pid, (27 * mib, 17 * mib))
    end(a, b)
    tool.finish()


@case
def rows_of_several_processes():
    """A row of several processes shows the sum of NVML's values, with each process counted once."""
    a, b = holder(), holder(300)
    nvml = Nvml("device 0", f"process {a.pid} {100 * mib}", f"process {b.pid} 1000", "process 1 5")
    tool = nvml.tool("-p", f"{a.pid},{b.pid}", "--by", "comm", "-i", "0.2")
    for workload in a, b:
        workload.go()
    want = 100 * mib + 1000, 90 * mib + 700
    wait_until(lambda: [row for row in newest(tool) if figures(row) == want and row["processes"] == 2], f"{want}")
    end(a, b)
    tool.finish()


@case(each={"535.54.03": "535.54.03", "535.86.10": "535.86.10", "550.54.15": "550.54.15"})
def drivers(version):
    """Different driver versions. In 535.54.03, elements of NVML's process lists are longer than the version suffix of
    the functions suggests."""
    workloads = [holder(1000 * (i + 1)) for i in range(5)]
    nvml = Nvml(f"driver {version}", "device 0", *(f"process {w.pid} {mib * (i + 3)}" for i, w in enumerate(workloads)))
    tool = nvml.tool("-p", ",".join(str(w.pid) for w in workloads), "-i", "0.2")
    for workload in workloads:
        workload.go()
    for i, workload in enumerate(workloads):
        shown(tool, workload.pid, (mib * (i + 3), mib * (i + 3) - 1000 * (i + 1)))
    end(*workloads)
    tool.finish()


@case
def failing_device():
    """A failing device is reported once, and the other device's figures are shown."""
    workload = holder()
    nvml = Nvml("device 0", "device 1", f"process {workload.pid} {100 * mib}", "fail device 0 15")
    tool = nvml.tool("-p", workload.pid, "-i", "0.2")
    workload.go()
    shown(tool, workload.pid, (100 * mib, 90 * mib))
    wait_until(lambda: len({row["time"] for row in tool.rows}) > 4, "several intervals")
    end(workload)
    tool.finish()
    messages = [line for line in tool.error.splitlines() if "device 0" in line]
    equal((len(messages), messages[0].startswith("gpualloc: ") if messages else None), (1, True),
          f"messages about device 0: {tool.error}")


views = {"pid": ([], True), "comm": (["--by", "comm"], True), "container": (["--by", "container"], True),
         "kind": (["--by", "kind"], False), "size": (["--by", "size"], False), "thread": (["--by", "thread"], False),
         "stack": (["--by", "stack"], False), "api": (["--by", "api"], False), "device": (["--by", "device"], False),
         "failed": (["-x"], False)}


@case(each=views, long=all_but(views, "pid", "container", "kind", "failed"))
def shown_in_rows_of_processes(view):
    """NVML's values are shown only if each row covers whole processes."""
    arguments, there = view
    workload = Workload(f"alloc a {mib}; alloc b 5 result=2; touch {{dir}}/held; wait {{dir}}/end")
    tool = Nvml("device 0", f"process {workload.pid} {5 * mib}").tool("-p", workload.pid, "-i", "0.2", *arguments)
    text = Nvml("device 0", f"process {workload.pid} {5 * mib}").tool("-p", workload.pid, "-i", "0.2", *arguments, json=False)
    workload.go()
    wait_until(lambda: tool.rows and len(text.text.splitlines()) > 4, "rows")
    if there:
        wait_until(lambda: figures(tool.rows[-1]) == (5 * mib, 4 * mib), "figures")
        wait_until(lambda: "4.0M" in text.text, "NVML's figure in the text")
    end(workload)
    check(there or all(figures(row) == (None, None) for row in tool.finish().rows), f"{tool}: unexpected values from NVML")
    equal("NVML" in text.finish().text, there, "whether there is an NVML column")


@case
def without_nvml():
    """Without NVML, or with --nvml off, JSON lacks the keys for NVML's values, and text shows n/a."""
    workload = Workload("alloc a 1000; sleep 300")
    nvml = Nvml("device 0", f"process {workload.pid} 5000")
    tools = [Tool("-p", workload.pid, json=json) for json in (True, False)]
    off = [Tool("-p", workload.pid, "--nvml", "off", env={"STANDIN_NVML": str(nvml.path)}, json=json) for json in (True, False)]
    no_driver = Tool("-p", workload.pid, "--nvml", harness.standin / library, env={"STANDIN_NVML": "/nonexistent"}, banner=False,
                     json=False)
    workload.go().wait()
    for as_json, as_text in tools, off:
        equal([figures(row) for row in as_json.finish().rows], [(None, None)], f"{as_json}")
        head, row = as_text.finish().text.splitlines()[-2:]
        equal((head.split()[-2:], row.split()[-2:]), (["NVML", "BEFORE+CTX"], ["n/a", "n/a"]), as_text.text)
        equal(as_text.error.count("NVML") + as_text.error.count("nvml"), 0, as_text.error)
    no_driver.finish(1)
    check("hint: " in no_driver.error, f"{no_driver.error}")


@case
def library_does_not_exist():
    refused(["--nvml", "/nonexistent/libnvidia-ml.so.1"], 1, "/nonexistent/libnvidia-ml.so.1")


@case
def file_is_no_library():
    file = harness.here / "libnvidia-ml.so.1"
    file.write_text("no library")
    refused(["--nvml", str(file)], 1, "libnvidia-ml")
