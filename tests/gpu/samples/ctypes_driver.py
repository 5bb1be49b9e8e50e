# SPDX-License-Identifier: Apache-2.0
"""The driver API from Python, without packages."""
import ctypes

PTX = b".version 5.0\n.target sm_50\n.address_size 64\n.visible .entry nothing()\n{\n    ret;\n}\n"
cuda = ctypes.CDLL("libcuda.so.1")
context, module, function, memory = (ctypes.c_void_p() for _ in range(4))


def call(name, *arguments):
    if code := getattr(cuda, name)(*arguments):
        raise SystemExit(f"{name} returned {code}")


call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), PTX)
call("cuModuleGetFunction", ctypes.byref(function), module, b"nothing")
one, none = ctypes.c_uint(1), ctypes.c_void_p()
for size in (1000, 70_000, 5_000_000):
    host = ctypes.create_string_buffer(size)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
    call("cuMemsetD8_v2", memory, ctypes.c_ubyte(7), ctypes.c_size_t(size))
    call("cuMemcpyHtoD_v2", memory, host, ctypes.c_size_t(size))
    for _ in range(100):
        call("cuLaunchKernel", function, one, one, one, one, one, one, 0, none, none, none)
    call("cuMemcpyDtoH_v2", host, memory, ctypes.c_size_t(size))
    call("cuMemFree_v2", memory)
call("cuCtxSynchronize")
