# SPDX-License-Identifier: Apache-2.0
"""Tables of HIP calls: functions with arguments, and what tools must count for each. Cases make all calls of a list."""
import re

import harness

stream, per_thread = 0x5000, 2
kernel, other_kernel = 0x401000, 0x402000
device, host = 0x7e0000000000, 0x7ffc00000000
symbol, event, node = 0x8000, 0x9000, 0xa000
host_to_device, device_to_host = 1, 2


def dim3(x, y, z):
    """Arguments for a dim3 passed by value, in two registers."""
    return y << 32 | x, z


def words(*values):
    return "{" + ",".join(map(str, values)) + "}"


def times(number):
    """Number of calls of the function at this position in a list. It is unique to the function."""
    return 3 + 2 * number


def exported(version, *shapes):
    """Functions that the stand-in's HIP library exports in this version; optionally only those whose code has one of
    these shapes (standin/hip/exports.txt)."""
    lines = [line.split() for line in (harness.root / "tests/standin/hip/exports.txt").read_text().splitlines()]
    return {name for first, shape, _, _, *names in lines
            if "#" != first <= version and (shape in shapes if shapes else shape != "null") for name in names}


def rows_of_the_table(version):
    """Functions that tools trace in this version, from the probe table."""
    text = (harness.root / "src/attach/probe_table_hip.cpp").read_text().partition("TableEntry hip_table[] = {\n")[2].partition("\n};")[0]
    text = re.sub(r"^ *//.*\n", "", text, flags=re.M)
    names = set()
    for entry in text.split("\n    {"):
        name, variant = re.search(r'"(\w+)(?:\[(\w+)\])?",\s+KIND_', entry).groups()
        only = re.search(r", (hip52?|hip6|before6|after52)\},\s*$", entry)
        if not only or only[1] in {"5": ("hip5", "before6", "after52")}.get(version, ("hip6", "after52")):
            names |= {name, name + (variant or "")}
    return names


def stream_of(function, arguments):
    """The stream as tools name it: for functions that end in _spt, the default stream is the thread's own."""
    return hex(stream if stream in arguments else per_thread if function.endswith("_spt") else 0)


# Rows: (function, arguments, [(grid, block) of each kernel that one call launches]).
def launches(version):
    grid, block = dim3(10, 2, 1), dim3(64, 2, 1)
    by_stub = (kernel, *grid, *block, 0, 512, stream)
    by_thread = (kernel, *grid, *block, 0, 512, 0)
    by_handle = (other_kernel, 5, 4, 3, 32, 8, 1, 256, stream)
    in_items = (other_kernel, 1000, 7, 1, 256, 4, 1, 0, stream)  # the last blocks are not full
    listed = [0, 2 << 32 | 7, 64 << 32 | 1, 1 << 32 | 2]
    of_devices = words(*2 * [kernel, *listed[1:], 0, 128, stream])
    of_modules = words(*3 * [other_kernel, *listed[1:], 128, stream, 0])
    small, items = ([10, 2, 1], [64, 2, 1]), ([4, 2, 1], [256, 4, 1])
    made = [
        ("hipLaunchKernel", by_stub, [small]),
        ("hipLaunchKernel_spt", by_thread, [small]),
        ("hipExtLaunchKernel", by_stub, [small]),
        ("hipLaunchCooperativeKernel", by_stub, [small]),
        ("hipLaunchCooperativeKernel_spt", by_thread, [small]),
        ("hipModuleLaunchKernel", by_handle, [([5, 4, 3], [32, 8, 1])]),
        ("hipModuleLaunchCooperativeKernel", by_handle, [([5, 4, 3], [32, 8, 1])]),
        ("_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j", in_items, [items]),
        ("_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_", in_items, [items]),
        ("hipLaunchCooperativeKernelMultiDevice", (of_devices, 2, 0), 2 * [([7, 2, 1], [64, 2, 1])]),
        ("hipExtLaunchMultiKernelMultiDevice", (of_devices, 1, 0), [([7, 2, 1], [64, 2, 1])]),
        ("hipModuleLaunchCooperativeKernelMultiDevice", (of_modules, 3, 0), 3 * [([7, 2, 1], [64, 2, 1])]),
    ]
    if version > "5":
        made += [("hipExtModuleLaunchKernel", in_items, [items]), ("hipHccModuleLaunchKernel", in_items, [items])]
    if version > "6":
        config = words(2 << 32 | 6, 64 << 32 | 1, 1 << 32 | 2, 512, stream, 0, 0)
        made += [("hipLaunchKernelExC", (config, kernel), [([6, 2, 1], [64, 2, 1])]),
                 ("hipDrvLaunchKernelEx", (config, other_kernel), [([6, 2, 1], [64, 2, 1])])]
    return made


# Launches without a grid. Rows: (function, arguments).
def other_launches(version):
    return [("hipGraphLaunch", (0xb000, stream)), ("hipGraphLaunch_spt", (0xb000, 0)),
            ("hipLaunchHostFunc", (stream, 0x403000, 0)), ("hipLaunchHostFunc_spt", (0, 0x403000, 0)),
            ("hipStreamAddCallback", (stream, 0x404000, 0, 0)), ("hipStreamAddCallback_spt", (0, 0x404000, 0, 0))]


# Rows: (function, arguments, kind of object that the call waits for). Functions that poll return "not ready" twice.
def waits(version):
    made = [("hipDeviceSynchronize", (), "context"), ("hipCtxSynchronize", (), "context"),
            ("hipStreamSynchronize", (stream,), "stream"), ("hipStreamSynchronize_spt", (0,), "stream"),
            ("hipEventSynchronize", (event,), "event"),
            ("hipStreamWaitValue32", (stream, device, 1, 0, 0xffffffff), "value"),
            ("hipStreamWaitValue64", (stream, device, 1, 0, 0xffffffff), "value"),
            ("hipStreamQuery", (stream,), "poll"), ("hipStreamQuery_spt", (0,), "poll"), ("hipEventQuery", (event,), "poll"),
            *((free, (device,), "free") for free in ("hipFree", "hipHostFree", "hipFreeHost", "hipHostUnregister", "hipIpcCloseMemHandle"))]
    return made + [("hipExecutionCtxSynchronize", (0xc000,), "context")] * (version > "6")


# Calls during the life of a graph, in order. Rows: (function, arguments, reported event, (kernels, copies, other nodes)
# that the call adds).
def graph_calls(version):
    kernels, copied, other = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    parameters = words(*16 * [0])

    def add(function, nodes, *more):
        return f"hip{function}", (node, "G", 0, 0, *more), "add", nodes

    def generic(kind, nodes, child=0):
        return add("GraphAddNode", nodes, words(kind, 0, child, *13 * [0]))

    def set_(function, *more):
        return f"hip{function}", ("X", node, *more), "set", None

    made = [
        ("hipGraphCreate", ("&C", 0), "create", None),
        ("hipGraphAddKernelNode", (node, "C", 0, 0, parameters), "add", kernels),
        ("hipGraphAddKernelNode", (node, "C", 0, 0, parameters), "add", kernels),
        ("hipGraphAddMemsetNode", (node, "C", 0, 0, parameters, 0), "add", copied),
        ("hipGraphCreate", ("&G", 0), "create", None),
        add("GraphAddKernelNode", kernels, parameters),
        add("GraphAddMemcpyNode", copied, parameters),
        add("GraphAddMemcpyNode1D", copied, device, host, 100, host_to_device),
        add("GraphAddMemcpyNodeFromSymbol", copied, host, symbol, 100, 0, device_to_host),
        add("GraphAddMemcpyNodeToSymbol", copied, symbol, host, 100, 0, host_to_device),
        add("GraphAddMemsetNode", copied, parameters),
        add("GraphAddHostNode", other, parameters),
        add("GraphAddEmptyNode", other),
        add("GraphAddEventRecordNode", other, event),
        add("GraphAddEventWaitNode", other, event),
        add("GraphAddBatchMemOpNode", other, parameters),
        add("DrvGraphAddMemcpyNode", copied, parameters, 0),
        add("DrvGraphAddMemsetNode", copied, parameters, 0),
        add("GraphAddMemAllocNode", other, "m=" + parameters),
        add("GraphAddMemFreeNode", other, "m[112]"),
        add("DrvGraphAddMemFreeNode", other, "m[112]"),
        add("GraphAddChildGraphNode", (2, 1, 0), "C"),
        generic(0, kernels), generic(1, copied), generic(2, copied), generic(3, other), generic(4, (2, 1, 0), "C"), generic(5, other),
        ("hipGraphClone", ("&H", "G"), "create", None),
        add("GraphAddEmptyNode", other),
        ("hipGraphInstantiate", ("&X", "G", 0, 0, 0), "instantiate", None),
        ("hipGraphInstantiateWithFlags", ("&Y", "G", 0), "instantiate", None),
        ("hipGraphInstantiateWithParams", ("&Y", "G", parameters), "instantiate", None),
        ("hipGraphUpload", ("X", stream), "upload", None),
        ("hipGraphLaunch", ("X", stream), "launch", None),
        ("hipGraphLaunch_spt", ("X", 0), "launch", None),
        set_("GraphExecKernelNodeSetParams", parameters),
        set_("GraphExecMemcpyNodeSetParams", parameters),
        set_("GraphExecMemcpyNodeSetParams1D", device, host, 100, host_to_device),
        set_("GraphExecMemcpyNodeSetParamsFromSymbol", host, symbol, 100, 0, device_to_host),
        set_("GraphExecMemcpyNodeSetParamsToSymbol", symbol, host, 100, 0, host_to_device),
        set_("GraphExecMemsetNodeSetParams", parameters),
        set_("GraphExecHostNodeSetParams", parameters),
        set_("GraphExecChildGraphNodeSetParams", "C"),
        set_("GraphExecEventRecordNodeSetEvent", event),
        set_("GraphExecEventWaitNodeSetEvent", event),
        set_("GraphExecBatchMemOpNodeSetParams", parameters),
        set_("GraphExecNodeSetParams", parameters),
        set_("DrvGraphExecMemcpyNodeSetParams", parameters, 0),
        set_("DrvGraphExecMemsetNodeSetParams", parameters, 0),
        set_("GraphNodeSetEnabled", 1),
        ("hipGraphExecUpdate", ("X", "H", "&n", words(3)), "update", None),
        ("hipGraphExecDestroy", ("X",), "exec-destroy", None),
        ("hipGraphDestroy", ("G",), "destroy", None),
    ]
    return [row for row in made if row[0] in exported(version)]


# Captures of the thread's own stream: functions that begin and end them, and that extend them to another stream.
def captures(version):
    def existing(*names):
        return [name for name in names if name in exported(version)]
    return {"begin": existing("hipStreamBeginCapture", "hipStreamBeginCapture_spt", "hipStreamBeginCaptureToGraph"),
            "end": existing("hipStreamEndCapture", "hipStreamEndCapture_spt"),
            "record": existing("hipEventRecord", "hipEventRecord_spt", "hipEventRecordWithFlags"),
            "wait": existing("hipStreamWaitEvent", "hipStreamWaitEvent_spt")}


# Rows: (function that returns a kernel's handle, arguments, handle, name of the kernel, source of the name).
def named(version):
    made = [
        ("__hipRegisterFunction", (0x99, kernel, "'other", "'_Z6vecaddPf", -1), kernel, "vecadd(float*)", "registration"),
        ("hipModuleGetFunction", ("&f", 0x99, "'_Z5scalei"), "f", "scale(int)", "lookup"),
        ("hipGetFuncBySymbol", ("&g", kernel), "g", "vecadd(float*)", "registration"),
        ("hipLibraryGetKernel", ("&k", 0x99, "'_Z5saxpyPf"), "k", "saxpy(float*)", "lookup"),
        ("hipKernelGetFunction", ("&l", "k"), "l", "saxpy(float*)", "lookup"),
    ]
    return [row for row in made if row[0] in exported(version)]
