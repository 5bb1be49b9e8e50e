# SPDX-License-Identifier: Apache-2.0
"""nvml.py LIBRARY PID: prints NVML's data about the devices and a process, as JSON. Runs in a separate process, since
it loads the library. The structures are those of nvml.h since CUDA 11."""
import ctypes
import json
import sys
import time

nvml, pid = ctypes.CDLL(sys.argv[1]), int(sys.argv[2])


class Process(ctypes.Structure):  # nvmlProcessInfo_v2_t
    _fields_ = [("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("instance", ctypes.c_uint), ("compute", ctypes.c_uint)]


class Sample(ctypes.Structure):  # nvmlProcessUtilizationSample_t
    _fields_ = [("pid", ctypes.c_uint), ("time", ctypes.c_ulonglong),
                *((name, ctypes.c_uint) for name in ("sm", "memory", "encoder", "decoder"))]


def call(name, *arguments):
    if code := getattr(nvml, name)(*arguments):
        raise SystemExit(f"{name} returned {code}")


def listed(device):
    """Bytes held by the process, from the list of compute processes; None if it is not listed, or the value is
    unknown."""
    count, buffer = ctypes.c_uint(1024), (Process * 1024)()
    name = "nvmlDeviceGetComputeRunningProcesses_v2"
    if getattr(nvml, name)(device, ctypes.byref(count), buffer):
        return None
    sizes = [one.bytes for one in buffer[:count.value] if one.pid == pid]
    return None if not sizes or max(sizes) == 2**64 - 1 else sum(sizes)


def utilization(device):
    """SM utilization in percent: the mean of the process's samples; None if there are none."""
    count = ctypes.c_uint(0)
    nvml.nvmlDeviceGetProcessUtilization(device, None, ctypes.byref(count), ctypes.c_ulonglong(0))
    buffer = (Sample * max(count.value, 1))()
    if nvml.nvmlDeviceGetProcessUtilization(device, buffer, ctypes.byref(count), ctypes.c_ulonglong(0)):
        return None
    mine = [one.sm for one in buffer[:count.value] if one.pid == pid]
    return sum(mine) / len(mine) if mine else None


class Support(ctypes.Structure):  # nvmlGpmSupport_t
    _fields_ = [("version", ctypes.c_uint), ("supported", ctypes.c_uint)]


class Metric(ctypes.Structure):  # nvmlGpmMetric_t
    _fields_ = [("number", ctypes.c_uint), ("result", ctypes.c_int), ("value", ctypes.c_double), ("names", ctypes.c_void_p * 3)]


metrics = {"graphics engine": 1, "SM": 2, "SM occupancy": 3}


class Metrics(ctypes.Structure):  # nvmlGpmMetricsGet_t, whose array grows with each version: the library reads `count` elements
    _fields_ = [("version", ctypes.c_uint), ("count", ctypes.c_uint), ("first", ctypes.c_void_p), ("second", ctypes.c_void_p),
                ("metrics", Metric * len(metrics))]


def monitors(device):
    """GPM metrics in percent over half a second (Hopper or newer); None if the device has no GPM."""
    support = Support(1, 0)
    is_supported = getattr(nvml, "nvmlGpmQueryDeviceSupport", None)
    if not is_supported or is_supported(device, ctypes.byref(support)) or not support.supported:
        return None
    samples = ctypes.c_void_p(), ctypes.c_void_p()
    for i, sample in enumerate(samples):
        time.sleep(0.5 * i)
        call("nvmlGpmSampleAlloc", ctypes.byref(sample))
        if nvml.nvmlGpmSampleGet(device, sample):
            return None
    request = Metrics(1, len(metrics), *samples)
    for metric, number in zip(request.metrics, metrics.values()):
        metric.number = number
    if nvml.nvmlGpmMetricsGet(ctypes.byref(request)):
        return None
    return {name: round(metric.value, 1) for name, metric in zip(metrics, request.metrics) if not metric.result}


def one(index):
    device, name = ctypes.c_void_p(), ctypes.create_string_buffer(96)
    call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(device))
    nvml.nvmlDeviceGetName(device, name, 96)
    now, pending = ctypes.c_uint(), ctypes.c_uint()
    mig = nvml.nvmlDeviceGetMigMode(device, ctypes.byref(now), ctypes.byref(pending))
    return {"name": name.value.decode(errors="replace"), "mig": None if mig else now.value, "bytes": listed(device),
            "sm_percent": utilization(device), "monitors": monitors(device)}


call("nvmlInit_v2")
version, count = ctypes.create_string_buffer(80), ctypes.c_uint()
nvml.nvmlSystemGetDriverVersion(version, 80)
call("nvmlDeviceGetCount_v2", ctypes.byref(count))
print(json.dumps({"driver": version.value.decode(errors="replace"), "devices": [one(index) for index in range(count.value)]}))
