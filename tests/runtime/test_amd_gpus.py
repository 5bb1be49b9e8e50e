# SPDX-License-Identifier: Apache-2.0
"""AMD GPUs and HIP processes in the tools that show devices: exact figures from sysfs, next to counted calls."""
import itertools
import time

import harness
from amd import AmdMachine, mib
from gaps import parts, sum_of
from harness import case, check, equal, wait_until
from hip import Calls, dim3, kernel, library, start, stream
from programs import Tool
from test_alloc_nvml import Nvml
from test_gpuspend import check_sums
from test_hip import cuda_begins, cuda_kernel
from tops import rows

no_library = ["--nvml", "off"]


def launching(calls, times=1):
    calls.call("hipLaunchKernel", times, kernel, *dim3(2, 1, 1), *dim3(64, 1, 1), 0, 0, stream)


@case(tool="cudatop", asan=True)
def of_processes_and_devices():
    """Figures of a used device (utilization, memory, compute units, copy engines), and of an unused one. AMD's driver
    reports no kernel times."""
    machine, calls = AmdMachine(2), Calls(library("7"))
    machine.device(0, product_name="Instinct MI300A", gpu_busy_percent=71, mem_info_vram_used=30 * mib, mem_info_vram_total=80 * mib)
    machine.process(calls.pid, 0, vram=25 * mib, sdma_us=0, units=25)
    tool = Tool("-p", calls.pid, "-i", "0.3", preexec=machine.enter)
    launching(calls)
    keys = ("gpu", "gpu_source", "memory_bytes", "memory_source", "cu_percent", "gpu_percent", "sm_percent")

    copied = itertools.count(10**6, 10**6)

    def found():
        machine.process(calls.pid, 0, vram=25 * mib, sdma_us=next(copied), units=25)
        return [row for row in rows(tool, "pid") if row["pid"] == calls.pid and row.get("sdma_percent")]
    row = wait_until(found, "figures of the copy engines", 20)[0]
    equal(tuple(row.get(key) for key in keys), ("0", "kfd", 25 * mib, "kfd", 25, 71, None), f"{row}")
    calls.end()
    tool.finish()
    unknown = ("sm_percent", "gpu_sm_active_percent", "gpu_tensor_active_percent", "gpu_dram_active_percent", "xid", "mig")
    equal({key for line in tool.rows for key in unknown if key in line}, set(), "keys that AMD's driver cannot provide")
    equal({row.get("vendor") for row in rows(tool, "pid")}, {"amd", None}, "vendors of rows with and without calls")
    gpu_keys = ("gpu_index", "gpu_name", "gpu_percent", "gpu_used_bytes", "gpu_total_bytes")
    equal({tuple(row.get(key) for key in gpu_keys) for row in rows(tool, "gpu")},
          {(0, "AMD Instinct MI300A", 71, 30 * mib, 80 * mib), (1, "AMD gfx942", None, None, None)}, "devices")
    check(any(row.get("gpu_users") == "calls" for row in rows(tool, "gpu") if row["gpu_index"] == 0), "the device's users are not known from calls")


@case(tool="cudatop")
def beside_nvidia():
    """GPUs of both vendors with one process on each. AMD's GPUs are numbered after NVIDIA's."""
    machine, hip = AmdMachine(1), Calls(library("6"))
    cuda = Calls(harness.standin / "libcuda.so.1")
    machine.process(hip.pid, 0, vram=7 * mib)
    nvml = Nvml("device 0", "name Card", f"process {cuda.pid} {5 * mib}")
    tool = nvml.tool("-p", f"{hip.pid},{cuda.pid}", 100, preexec=machine.enter)
    launching(hip, 19)
    equal(cuda.call("cuCtxSynchronize", 7), {3: 7}, "not initialized")
    hip.end(), cuda.end()
    tool.finish()
    got = {row["pid"]: tuple(row.get(key) for key in ("vendor", "gpu", "gpu_source", "memory_source", "launches", "waits"))
           for row in rows(tool, "pid")}
    equal(got, {hip.pid: ("amd", "1", "kfd", "kfd", 19, 0), cuda.pid: ("nvidia", "0", "nvml", "nvml", 0, 7)}, "rows")


@case(tool="gpualloc")
def both_vendors_in_rows():
    """A process that calls both APIs has both vendors in its row; without calls, a row has no vendor."""
    calls = Calls(harness.standin / "libcuda.so.1", library("7"))
    tool, why = Tool("-p", calls.pid, 100), start("cudatop", "-p", calls.pid, 100, *no_library)
    alone = Calls(library("7"))
    of_one = start("gpualloc", "-p", alone.pid, 100)
    calls.call("hipMalloc", 3, "&p", 4096)
    alone.call("hipMalloc", 1, "&p", 4096)
    alone.end()
    row, = of_one.finish().rows
    equal(row["vendor"], "amd", f"{row}")
    calls.ask(f"open {harness.standin / 'libcuda.so.1'}")
    equal(calls.call("cuMemAlloc_v2", 2, "&q", 4096), {3: 2}, "not initialized")
    calls.end()
    row, = tool.finish().rows
    equal((row["vendor"], row["allocs"], row["failures"]), ("nvidia,amd", 3, 2), f"{row}")
    row, = rows(why.finish(), "pid")
    equal((row["vendor"], row["allocs"], row["allocation_failures"]), ("nvidia,amd", 3, 2), f"{row}")


@case(tool="gpuspend", alone=True)
def shares_of_gpu_time():
    """gpuspend attributes the time of three AMD GPUs: one is used, one is held idle, and one is unallocated. Launches
    and copies are exact."""
    machine, busy, idle = AmdMachine(3), Calls(library("7")), Calls(library("5"))
    for number in range(3):
        machine.device(number, product_name="Instinct MI300X")
    machine.process(busy.pid, 0, vram=5 * mib)
    machine.process(idle.pid, 1, vram=3 * mib)
    tool = Tool("-p", f"{busy.pid},{idle.pid}", "--by", "pid", 100, preexec=machine.enter)
    for _ in range(5):
        launching(busy, 13)
        busy.call("hipMemcpy", 3, 0x7e0000000000, 0x7ffc00000000, 1000, 1)
        time.sleep(0.4)
    tool.stop()
    busy.end(), idle.end()
    tenants, total = check_sums(tool.rows, 3)
    equal(total["devices"], 3, f"{total}")
    row, = [row for row in tenants if row.get("pid") == busy.pid]
    equal((row["vendor"], row["launches"], row["copy_bytes"], row["model"]), ("amd", 65, 15000, "AMD Instinct MI300X"), f"{row}")
    equal(row["device_ids"], f"GPU-{0x1000:016x}", "device")
    unknown = ("busy_share_percent", "busy_ns", "sm_active_percent", "sm_occupancy_percent", "tensor_active_percent", "dram_active_percent")
    equal({key for line in tool.rows for key in unknown if key in line}, set(), "keys that AMD's driver cannot provide")
    check(any("AMD's driver does not report" in note for line in tool.rows for note in line.get("notes", [])), "no note about unknown figures")


@case(tool="gpuspend", alone=True)
def shares_with_both_vendors():
    """A GPU of each vendor with a process on each, and a third process that uses both GPUs through both APIs: checks
    the launches and GPUs of each process."""
    machine, hip, cuda = AmdMachine(1), Calls(library("7")), Calls(harness.standin / "libcuda.so.1")
    both = Calls(harness.standin / "libcuda.so.1", library("7"))
    machine.device(0, product_name="Instinct MI300X")
    for calls in hip, both:
        machine.process(calls.pid, 0, vram=5 * mib)
    nvml = Nvml("device 0", "uuid GPU-0", "name NVIDIA H100", *(f"process {calls.pid} {5 * mib}" for calls in (cuda, both)))
    cuda_begins(cuda)
    both.ask(f"open {harness.standin / 'libcuda.so.1'}")
    cuda_begins(both)
    tool = nvml.tool("-p", f"{hip.pid},{cuda.pid},{both.pid}", "--by", "pid", 100, preexec=machine.enter)
    for number in range(3):
        cuda.call("cuLaunchKernel", 7, *cuda_kernel)
        both.ask(f"open {harness.standin / 'libcuda.so.1'}")
        both.call("cuLaunchKernel", 5, *cuda_kernel)
        both.ask(f"open {library('7')}")
        launching(both, 3)
        launching(hip, 11)
        time.sleep(0.4)
    tool.stop()
    hip.end(), cuda.end(), both.end()
    tenants, total = check_sums(tool.rows, 2)
    of_amd = f"GPU-{0x1000:016x}"
    got = {row["pid"]: (row["vendor"], row["launches"], set(row["device_ids"].split(","))) for row in tenants if "pid" in row}
    equal(got, {hip.pid: ("amd", 33, {of_amd}), cuda.pid: ("nvidia", 21, {"GPU-0"}), both.pid: ("nvidia,amd", 24, {"GPU-0", of_amd})},
          f"rows: {tenants}")


@case(tool="cudagap")
def gaps_of_hip():
    """HIP calls are grouped like CUDA calls, and each gap between launches of a thread is counted."""
    calls = Calls(library("6"))
    tool, gaps = Tool("-p", calls.pid, 100), start("cudagap", "-p", calls.pid, "-H", "gap")
    launching(calls, 30)
    calls.call("hipDeviceSynchronize", 5)
    calls.call("hipMalloc", 5, "&p", 100)
    launching(calls, 20)
    calls.end()
    row, = tool.finish().rows
    equal(row["vendor"], "amd", f"{row}")
    check(all(row[f"{part}_ns"] > 0 for part in ("launch", "wait", "memory")) and row["copy_ns"] == 0, f"a part of the time is zero, or copies are not: {row}")
    record, = [record for record in gaps.finish().records if record["type"] == "hist"]
    equal(record["total"], 49, "gaps between 50 launches")
    check(sum_of(row, parts) == row["wall_ns"], f"the parts do not add up to the wall time: {row}")
