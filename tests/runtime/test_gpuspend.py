# SPDX-License-Identifier: Apache-2.0
"""gpuspend: pods and jobs that hold GPUs, the source of this information, and processes that use GPUs. The times and
costs of the rows add up to those of the devices."""
import csv
import functools
import io
import json
import re
import urllib.request

import copies
import harness
from containers import Cgroup, HostRoot, Name, kubepods
from harness import check, equal, wait_until
from programs import Tool, Workload
from test_alloc_nvml import Nvml, mib
from test_refusals import refused
from truth import launched, layer_wanted

case = functools.partial(harness.case, tool="gpuspend")

model, price = "NVIDIA H100 80GB HBM3", 2_950_000  # price per hour, in millionths of a dollar
hour_ns = 3_600_000_000_000


def priced(text=f"*H100*,{price / 1e6}\n"):
    path = harness.here / "prices"
    path.write_text(text)
    return ["--prices", path]


def device(index, *lines):
    return [f"device {index}", f"uuid GPU-{index}", f"name {model}", f"minor {index}", *lines]


def cost_of(ns):
    return (ns * price + hour_ns // 2) // hour_ns


def check_sums(rows, devices):
    """Checks that times and costs of tenants, and of all rows, add up exactly. Returns the rows of the tenants and the
    row of the total."""
    by = lambda of: [row for row in rows if row["of"] == of]
    tenants, (idle,), (unallocated,), (total,) = by("tenant"), by("idle"), by("unallocated"), by("total")
    equal(total["devices"], devices, "devices")
    equal(sum(row["used_ns"] for row in tenants), total["used_ns"], "used time")
    equal(sum(row["idle_ns"] for row in tenants), idle["device_time_ns"], "idle time")
    lines = [*tenants, idle, unallocated]
    equal(sum(row["device_time_ns"] for row in lines), total["device_time_ns"], "time of all rows")
    equal(total["device_time_ns"], devices * total["interval_ns"], "time of all devices")
    if "cost_micros" in total:
        equal(sum(row["cost_micros"] for row in lines), total["cost_micros"], "cost of all rows")
        equal(sum(row["idle_cost_micros"] for row in tenants), idle["cost_micros"], "cost of idle time")
        equal(total["cost_micros"], devices * cost_of(total["interval_ns"]), "cost of all devices")
    return tenants, total


def grant(name, *ids):
    return {"PodUID": name.pod_uid, "ContainerName": name.container, "ResourceName": "nvidia.com/gpu",
            "DeviceIDs": {"0": list(ids)}, "AllocResp": "CgA="}


@case(alone=True)
def pods():
    """A pod that launches, an idle pod with two devices and no process, a pod that ended, and an unallocated device."""
    host, busy, idle, gone = HostRoot(), Name(), Name(), Name()
    for name in busy, idle:
        host.containerd(name)
    host.write("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", {"Data": {
        "PodDeviceEntries": [grant(busy, "GPU-0"), grant(idle, "GPU-1"), grant(gone, "GPU-3")],
        "RegisteredDevices": {"nvidia.com/gpu": [f"GPU-{i}" for i in range(4)]}}, "Checksum": 1})
    host.write("var/lib/kubelet/dra_manager_state", {"Data": json.dumps({"Entries": [
        {"ClaimUID": "c", "PodUIDs": {idle.pod_uid: {}}}, {"ClaimUID": "d", "PodUIDs": {gone.pod_uid: {}}}]}), "Checksum": 1})
    host.write("var/lib/kubelet/plugins/gpu.nvidia.com/checkpoint.json", {"v2": {"preparedClaims": {
        claim: {"preparedDevices": [{"devices": [{"gpu": {"info": {"uuid": uuid}}}]}]} for claim, uuid in (("c", "GPU-2"), ("d", "GPU-3"))}}})
    cgroups = [Cgroup("v2", kubepods(name)) for name in (busy, idle)]
    workload = Workload("forever; launch vecadd 17; copy 3 bytes=1000; sleep 20; end", preexec=cgroups[0].join)
    nvml = Nvml(*device(0, f"process {workload.pid} {25 * mib}"), *device(1), *device(2), *device(3))
    tool = nvml.tool("-i", "0.5", "--host-root", host.path, *priced(), preexec=host.enter)
    workload.go()
    wait_until(lambda: any(row.get("pod") == idle.pod and row["idle_ns"] > 10**9 for row in tool.rows), "a second of idle time of the idle pod")
    truth = workload.stop().truth()
    tool.stop()
    reports = {}
    for row in tool.rows:
        reports.setdefault(row["time"], []).append(row)
    sums = {}
    for rows in reports.values():
        for row in check_sums(rows, 4)[0]:
            one = sums.setdefault(row.get("pod"), {"ids": set(), "by": set(), "launches": 0, "copy_bytes": 0, "used_ns": 0})
            one["ids"] |= set(row.get("device_ids", "").split(",")) - {""}
            one["by"] |= set(row.get("held_by", "").split(",")) - {""}
            for key in "launches", "copy_bytes", "used_ns":
                one[key] += row[key]
    equal(set(sums) - {None}, {busy.pod, idle.pod}, "pods that exist")
    kernels = [call for call in truth if call["kind"] == "kernel"]
    equal((sums[busy.pod]["ids"], sums[busy.pod]["launches"]), ({"GPU-0"}, launched(kernels)), "the busy pod")
    equal(sums[busy.pod]["copy_bytes"], sum(copies.sums(call, False)["bytes"] for call in truth
                                              if copies.is_copy(call) and layer_wanted(call, "driver")), "bytes copied")
    check({"kubelet", "context"} <= sums[busy.pod]["by"], f"unexpected sources: {sums[busy.pod]}")
    equal(sums[idle.pod], {"ids": {"GPU-1", "GPU-2"}, "by": {"kubelet", "dra"}, "launches": 0, "copy_bytes": 0, "used_ns": 0}, "the idle pod")
    notes = {note for row in tool.rows for note in row.get("notes", [])}
    check(any(note.startswith(f"{idle.namespace}/{idle.pod} held 2 GPUs for ") and "launched nothing for" in note for note in notes),
          f"no note about the idle pod: {notes}")


def counted(tool):
    """Checks the metrics page: used, idle and unallocated seconds, and their cost."""
    address = wait_until(lambda: re.search(r"http://127\.0\.0\.1:\d+/metrics", tool.error), "the address of the metrics page")[0]

    def sums():
        with urllib.request.urlopen(address, timeout=30 * harness.patience) as answer:
            page = answer.read().decode()
        out = {}
        for name, labels, value in re.findall(r"^gpusnoop_gpu_(\w+)_total(\S*) (\S+)$", page, re.M):
            check("cost" not in name or 'currency="USD"' in labels, f"{name}{labels}")
            out[name] = out.get(name, 0) + float(value)
        return out

    got = wait_until(lambda: (sums_now := sums()).get("used_seconds", 0) > 0.5 and sums_now, "half a second of use")
    seconds, money = (sum(got[f"{part}_{unit}"] for part in ("used", "idle", "unallocated")) for unit in ("seconds", "cost"))
    check(got["resident_seconds"] >= got["driving_seconds"] > 0.5, f"unexpected seconds: {got}")
    check(abs(money - seconds * price / 1e6 / 3600) < 3e-5, f"a cost of {money} for {seconds} s of a device: {got}")
    tool.stop()


@case(asan=True)
def a_shared_device():
    """Two processes on one device: shares by each way of splitting, also in the table and in FOCUS output."""
    script = "forever; launch vecadd {}; sleep 50; end"
    many, few = (Workload(script.format(n)) for n in (90, 10))
    nvml = Nvml(*device(0, f"process {many.pid} {10 * mib}", f"process {few.pid} {30 * mib}", "gpm 2 61.5", "gpm 5 12.25", "gpm 3 nan",
                        "utilization 97", "memory 1000000 40000 0"))
    many.go(), few.go()  # the workloads launch before a tool starts, so that no run ends before the first launch
    common = ["-p", f"{many.pid},{few.pid}", "--by", "pid", "-d", "1.5", *priced()]
    tools = {how: nvml.tool(*common, "--split", how) for how in ("launches", "memory")}
    focus = nvml.tool(*common, "--csv", json=False)
    metrics = nvml.tool("-p", f"{many.pid},{few.pid}", "--by", "comm", "--listen", "0", "-i", "0.3", *priced(), json=False)
    counted(metrics)
    for tool in (*tools.values(), focus):
        tool.finish()
    share = {}
    for how, tool in tools.items():
        tenants, total = check_sums(tool.rows, 1)
        check(total["own_cpu_percent"] > 0 and total.get("probes_cpu_percent", 1) > 0, f"unexpected overhead: {total}")
        equal({(row["shared"], row["split"]) for row in tenants}, {("shared", how)}, "sharing and split")
        equal({(row["sm_active_percent"], row["tensor_active_percent"], row["gpu_busy_percent"], row["memory_used_bytes"], row["measured_by"],
                "sm_occupancy_percent" in row or "dram_active_percent" in row, row["efficiency_shared_ns"] > 0) for row in tenants},
              {(61.5, 12.25, 97, 40000, "nvml", False, True)}, "utilization of the shared device")
        of = {row["pid"]: row["used_ns"] + row["idle_ns"] for row in tenants}
        share[how] = of[few.pid] / total["device_time_ns"]
    check(0.02 < share["launches"] < 0.5 < share["memory"] < 0.9, f"unexpected share of the process with few launches: {share}")
    lines = list(csv.DictReader(io.StringIO(focus.text)))
    nanoseconds = [int(line["x_Seconds"].replace(".", "")) for line in lines]
    micros = [int(line["EffectiveCost"].replace(".", "")) for line in lines]
    equal(sum(micros), cost_of(sum(nanoseconds)), "cost of all lines")
    equal({(line["x_SmActive"], line["x_DramActive"]) for line in lines if line["x_Part"] == "used"}, {("0.615", "")}, "utilization in FOCUS")
    equal({(line["ResourceId"], line["ResourceName"], line["BillingCurrency"], line["ConsumedUnit"]) for line in lines},
          {("GPU-0", model, "USD", "GPU-Hours")}, "device in FOCUS")
    check({"used"} <= {line["x_Part"] for line in lines}, f"unexpected parts: {lines}")


@case(alone=True)
def parts_of_devices():
    """MIG: each (compute) instance has its part of the time, and its processes, as reported by the driver. MPS: clients
    of one server are separate, and their device's utilization is from dcgm-exporter. Slurm: a job holds its allocated
    devices."""
    script = "forever; launch vecadd {}; sleep 20; end"
    on_mig, first, second, *clients = (Workload(script.format(n)) for n in (5, 3, 2, 7, 11))
    server = Workload("forever; sleep 20; end", warm=False)
    job = Cgroup("v2", f"system.slice/slurmstepd.scope/job_{on_mig.pid}/step_0/user/task_0")
    in_job = Workload("forever; sleep 20; end", warm=False, preexec=job.join, env={"SLURM_JOB_GPUS": "2", "SLURM_STEP_GPUS": "0"})
    (harness.here / "page").write_text('DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="GPU-1"} 0.25\n'
                                       'DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-0",GPU_I_ID="4"} 0.75\n')
    nvml = Nvml(*device(0, "mig 1", "instance 4 0 3 MIG-a", "instance 5 0 1 MIG-b", "instance 5 1 1 MIG-c", f"process {on_mig.pid} {mib} gi=4 ci=0",
                        f"process {first.pid} {mib} gi=5 ci=0", f"process {second.pid} {mib} gi=5 ci=1", "gpm 5 33 gi=4", "gpm 5 44 gi=5"),
                *device(1, f"process {server.pid} {mib}", *(f"process {client.pid} {mib} list=mps" for client in clients)), *device(2))
    for one in (on_mig, first, second, *clients):
        one.go()
    tool = nvml.tool("-d", "2.5", "--by", "pid,device", "--dcgm", harness.here / "page", *priced()).finish()
    tenants, total = check_sums(tool.rows, 3)
    of = {row.get("pid"): row for row in tenants if "pid" in row}
    near = lambda row, part: abs(row["device_time_ns"] + row["idle_ns"] - total["interval_ns"] * part) < 20
    mig = of[on_mig.pid]
    equal((mig["device"], mig["tensor_active_percent"], mig["sm_active_percent"], mig["measured_by"], near(mig, 3 / 7), "shared" in mig),
          ("MIG-a", 33, 75, "nvml,dcgm", True, False), f"row on an instance: {mig}")
    for one, device_of_it in (first, "MIG-b"), (second, "MIG-c"):
        row = of[one.pid]
        equal((row["device"], row.get("tensor_active_percent"), near(row, 1 / 7), "shared" in row, row["launches"] > 0),
              (device_of_it, None, True, False, True), f"row on a compute instance, which is not measured: {row}")
    for client in clients:
        row = of[client.pid]
        check(row["device"] == "GPU-1" and row["launches"] > 0 and row["shared"] and row["sm_active_percent"] == 25, f"unexpected row of a client: {row}")
    ratio = of[clients[1].pid]["launches"] / of[clients[0].pid]["launches"]
    check(1.1 < ratio < 2.2, f"unexpected ratio of the clients' launches, not 11 to 7: {ratio}")
    equal(of[server.pid]["launches"], 0, "launches of the server")
    jobs = [row for row in tenants if row["device"] == "GPU-2"]
    equal([(row["held_by"], row["used_ns"]) for row in jobs], [("slurm", 0)], "devices held by the job")
    spare = sum(row["device_time_ns"] for row in tool.rows if row["of"] == "unallocated")
    check(abs(spare - total["interval_ns"] * 2 / 7) < 20, f"unexpected unallocated time (no instance, or an instance without a holder): {spare}")
    for one in (on_mig, first, second, *clients, server, in_job):
        one.stop()


@case(alone=True)
def devices_from_cdi():
    """CDI: a container has the device files of a MIG instance and its device; an annotation names the team."""
    host, name = HostRoot(), Name()
    host.containerd(name, annotations={"example.com/team": "speech-2"},
                    devices=["/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap30", "/dev/nvidia-caps/nvidia-cap31"])
    host.write("proc/devices", "Character devices:\n238 nvidia-caps\n")
    host.write("proc/driver/nvidia-caps/mig-minors", "config 1\ngpu0/gi4/access 30\ngpu0/gi4/ci0/access 31\ngpu0/gi5/access 39\n")
    teams = host.write("teams", "speech,label,example.com/team=speech-*\n")
    Cgroup("v2", kubepods(name))
    nvml = Nvml(*device(0, "mig 1", "instance 4 0 3 MIG-a", "instance 5 0 2 MIG-b"))
    tool = nvml.tool("-d", "1.5", "--host-root", host.path, "--teams", teams, *priced(), preexec=host.enter).finish()
    rows, _ = check_sums(tool.rows, 1)
    equal([(row["pod"], row["device_ids"], row["held_by"], row["team"], row["used_ns"]) for row in rows],
          [(name.pod, "MIG-a", "config", "speech", 0)], "devices held by the container")


@case
def waits():
    """Time that threads waited for the device, in stream waits and frees; unknown with --cheap."""
    workload = Workload("sync 20 fn=cuStreamSynchronize delay_us=2000; alloc a 100; free a delay_us=10000; launch vecadd 5")
    known, cheap = (Tool("-p", workload.pid, "--nvml", "off", "--by", "pid", *how) for how in ((), ("--cheap",)))
    workload.go().wait()
    rows = [next(row for row in tool.finish().rows if row["of"] == "tenant") for tool in (known, cheap)]
    check(5e7 <= rows[0]["wait_ns"] <= rows[0]["interval_ns"], f"{rows[0]}")  # longer if other processes use the CPUs
    equal((rows[1].get("wait_ns"), [row["launches"] for row in rows]), (None, [5, 5]), f"{rows[1]}")


@case
def unknown_devices():
    """Without known devices, calls are counted, and holdings are reported as unknown, not 0."""
    workload = Workload("launch vecadd 31; copy 2 bytes=50")
    tools = [Tool("-p", workload.pid, "--nvml", "off", "--host-root", HostRoot().path, "--by", "comm", *mode, json=not mode)
             for mode in ([], ["--cheap", "-T"])]
    workload.go().wait()
    for tool in tools:
        tool.finish()
    row, total = tools[0].rows
    equal((row["launches"], row["copy_bytes"], row["comm"]), (31, 100, "workload"), "calls of the process")
    equal([key for key in ("held_by", "device_ids", "cost_micros", "used_ns", "idle_ns") if key in row], [], "unknown values")
    check("no GPU found" in total["notes"][0] and "(unallocated)" not in tools[1].text, f"{total}")
    equal([key for key in total if key.endswith("_ns") and key != "interval_ns"], [], "times without a device")


@case
def invalid_prices():
    refused(["-p", "1", *priced("*H100*,cheap\n")], 1, "line 1", "cheap")
    refused(["-p", "1", "--prices", harness.here], 1, "not a regular file")


@case
def state_over_restarts():
    """The state file sums two killed runs and a finished one, without counting any time twice. A teams file assigns
    rows to teams."""
    workload = Workload("forever; launch vecadd 3; sleep 10; end")
    nvml = Nvml(*device(0, f"process {workload.pid} {mib}"), *device(1))
    (harness.here / "teams").write_text("nobody,namespace,x\nthe-team,user,*\n")
    state = harness.here / "state"
    common = ["-p", workload.pid, "--by", "team", "--teams", harness.here / "teams", "--state", state, *priced()]

    def kept():
        found = re.search(r"^time\t\d+\t\d+\t(\d+)$", state.read_text(), re.M) if state.exists() else None
        return int(found[1]) if found else 0
    workload.go()
    for _ in range(2):
        before, running = kept(), nvml.tool(*common, "-i", "0.2")
        wait_until(lambda: kept() > before, "the state grows")
        running.process.kill()
        running.process.wait()
    before, last = kept(), nvml.tool(*common, "-d", "0.5").finish()
    tenants, total = check_sums(last.rows, 2)
    equal([row["team"] for row in tenants], ["the-team"], "teams")
    equal((total["interval_ns"], total["interval_ns"] - before >= 500_000_000), (kept(), True), "time of all runs")
    check(any("were not observed" in note for note in total["notes"]), f"no note about time without a run: {total['notes']}")
    refused(["-p", workload.pid, "--state", state], 1, "--by team")
    workload.stop()


@case
def the_clock_was_set_back():
    """A state file that was saved in the future is used, and its sums only grow. Only the first run that reads it
    warns."""
    workload = Workload("forever; launch vecadd 3; sleep 10; end")
    nvml, state = Nvml(*device(0, f"process {workload.pid} {mib}"), *device(1)), harness.here / "state"
    workload.go()
    run = lambda: nvml.tool("-p", workload.pid, "--state", state, "-d", "0.5").finish()  # noqa: E731
    first = run()
    check("clock" not in first.error, first.error)
    moved = lambda found: "time\t{}\t{}\t{}".format(*(int(time) + 86400 * 10**9 for time in found.groups()[:2]), found[3])  # noqa: E731
    text, moves = re.subn(r"^time\t(\d+)\t(\d+)\t(\d+)$", moved, state.read_text(), flags=re.M)
    equal(moves, 1, "lines with times")
    state.write_text(text)
    before = first.rows[-1]["interval_ns"]
    for warns in True, False:
        last = run()
        equal("the clock was set back by " in last.error, warns, f"warning ({last.error})")
        check(last.rows[-1]["interval_ns"] >= before + 500_000_000, f"unexpected time of all runs: {last.rows[-1]} after {before}")
        before = last.rows[-1]["interval_ns"]
    workload.stop()
