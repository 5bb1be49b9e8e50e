# SPDX-License-Identifier: Apache-2.0
"""Names of kernels: in programs that start after the tool, and in programs that obtained their handles before."""
import harness
import system
from harness import case, check, equal, wait_until
from programs import Tool, Workload, trace, warm_grid
from truth import same_counts

demangled = {"vecadd(float const*, float const*, float*, int)", "saxpy(float*, float const*, float)",
             "void reduce<float>(float const*, float*, int)", "void detail::apply<4, float>(float, float*)",
             "scale(float*, int)"}
every_kernel = "launch vecadd 3; launch saxpy 3; launch reduce 3; launch apply 3; launch scale 3"

# All handles are created, and the runtime has registered the kernels, before the tool starts.
known_before = f"{every_kernel.replace(' 3', f' 1 grid={warm_grid[0]}')}; touch {{dir}}/up; wait {{dir}}/start\n"


def names(tool, **fields):
    return {row.get("kernel") for row in tool.rows if "launches" in row and all(row[k] == v for k, v in fields.items())}


@case(each={form: form for form in ("workload", "workload-nopie", "workload-static")})
def running_program(form):
    """Names come from symbols, including templates, a local stub and clang's __device_stub__."""
    workload = Workload(known_before + f"repeat 25; {every_kernel}; sleep 100; end", form)
    workload.go()
    harness.wait_until((harness.here / "up").exists, "the handles are created")
    driver, runtime = Tool("-p", workload.pid, "-i", 1), Tool("-p", workload.pid, "--api", "runtime")
    (harness.here / "start").touch()
    workload.truth()
    driver.finish()
    last = max(row["time"] for row in driver.rows)
    equal(names(driver, time=last), demangled, "names with --api driver, in the last interval")
    equal(names(runtime.finish()), demangled, "names with --api runtime")


@case
def opaque_handles_get_no_wrong_names():
    """Handles of runtime 13 are opaque. Kernels that are known when a report is printed have the right name; for the
    others, the report shows the handle."""
    workload = Workload(known_before + f"repeat 15; {every_kernel}; sleep 100; end", "workload13")
    workload.go()
    harness.wait_until((harness.here / "up").exists, "the handles are created")
    tool = Tool("-p", workload.pid)
    (harness.here / "start").touch()
    truth = workload.truth()
    same_counts(tool.finish(), truth)
    handles = {call["handle"]: call["demangled"] for call in truth if call["layer"] == "driver"}
    for row in tool.rows:
        check("kernel" in row or row.get("handle") in handles, f"neither name nor handle: {row}")


@case
def running_program_in_a_short_run():
    """Names are found within the first second of tracing."""
    workload = Workload(known_before + f"{every_kernel}; sleep 300; {every_kernel}")
    workload.go()
    harness.wait_until((harness.here / "up").exists, "the handles are created")
    tool = Tool("-p", workload.pid)
    (harness.here / "start").touch()
    workload.wait()
    equal(names(tool.finish()), demangled, "names")


@case(each={form: form for form in ("workload", "workload13", "workload-static")}, asan=True, alone=True)
def program_that_starts_later(form):
    known = Workload("sleep 1", form)  # so that the library is probed before the other program starts
    tool = Tool("--by", "pid,kernel")
    later = Workload(f"{every_kernel}; sleep 300; {every_kernel}", form, warm=False)
    truth = later.truth()
    known.go().wait()
    tool.stop()
    equal(names(tool, pid=later.pid), demangled, f"names of {form}")
    same_counts(tool, truth, by=("pid", "kernel"))


@case
def driver_lookups():
    """Kernels looked up with the driver's functions are named: arbitrary names, kernels of libraries, and new handles
    after a reload of all modules."""
    tool, truth = trace("launch my_kernel 3; launch _Z5otherPfi 5 handle=kernel; launch _ZN1a1bIiEEvT_ 7\n"
                        "reload; launch after_the_reload 9; launch my_kernel 11; sleep 100", form="workload-driver")
    equal(names(tool), {"my_kernel", "other(float*, int)", "void a::b<int>(int)", "after_the_reload"}, "names")
    same_counts(tool, truth)


@case
def in_events():
    """-e prints the name known at that time: a handle that is looked up during tracing has a name from its first launch
    on."""
    tool, _ = trace("launch my_kernel 3; launch other 5; sleep 200", "-e", form="workload-driver")
    equal({event.get("kernel") for event in tool.events}, {"my_kernel", "other"}, "names")


@case
def two_programs_with_one_handle():
    """The same handle identifies a different kernel in each process, and a different one after exec."""
    first, second = (Workload(f"launch {name} 3; exec; sleep 50; launch {name}_later 5; end", "workload-driver",
                              preexec=system.same_addresses) for name in ("mine", "your"))
    tool = Tool("-p", f"{first.pid},{second.pid}", "--by", "pid,kernel")
    for workload in first, second:
        workload.go()
    truth = first.truth() + second.truth()
    check(len({call["handle"] for call in truth}) < len(truth), "the processes share no handle")
    same_counts(tool.finish(), truth, by=("pid", "kernel"))
    equal({(row["pid"], row.get("kernel")) for row in tool.rows},
          {(first.pid, "mine"), (first.pid, "mine_later"), (second.pid, "your"), (second.pid, "your_later")}, "names")


@case
def short_and_full():
    """Tables shorten names unless --names full is given. JSON has full names."""
    workload = Workload(f"forever; {every_kernel}; sleep 50; end")
    short, full = (Tool("-p", workload.pid, "-i", "0.3", *more, json=False) for more in ([], ["--names", "full"]))
    workload.go()
    for tool, names in (full, demangled), (short, ("vecadd", "saxpy", "reduce", "detail::apply", "scale")):
        for name in names:
            wait_until(lambda: name in tool.text, f"{name} in the output of {tool}")
    workload.stop()
    short.finish(), full.finish()
    check("float const*" not in short.text, f"a shortened name contains arguments: {short.text}")


@case
def user_stacks():
    """-U prints the program's function that made the call."""
    workload = Workload("launch vecadd 101 fn=cuLaunchKernel; launch saxpy 50; touch {up}; sleep 2500")
    tool = Tool("-p", workload.pid, "-U")
    workload.go().wait()
    stacks = [row for row in tool.finish().rows if row["frames"]]
    equal(sum(row["launches"] for row in stacks), 151, "launches with a stack")
    frames = [frame for row in stacks for frame in row["frames"]]
    check(any("saxpy" in frame for frame in frames), f"no stub in {frames}")
    check(any("workload::call_symbol" in frame or "workload::" in frame for frame in frames), f"no callers in {frames}")
