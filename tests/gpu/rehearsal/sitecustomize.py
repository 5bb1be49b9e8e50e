# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for PyTorch, CuPy, JAX and Triton, as far as tests/gpu/samples use them. They compute nothing, but make
driver calls like the real packages. Python imports this file automatically if its folder is in PYTHONPATH."""
import atexit
import contextlib
import ctypes
import functools
import sys
import types

PTX = b".version 5.0\n.target sm_50\n.address_size 64\n" + b"".join(
    b".visible .entry %s()\n{\n    ret;\n}\n" % kernel for kernel in (b"nothing", b"sigmoid"))
SIZE = 4096
none, pool = ctypes.c_void_p(), []


class Driver:
    """The driver, opened by the first call, as in the real packages."""

    def __init__(self):
        self.library, self.module, self.stream = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), none
        context = ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self("cuCtxSetCurrent", context)
        self("cuModuleLoadData", ctypes.byref(self.module), PTX)
        self.function = self.kernel(b"nothing")
        atexit.register(lambda: [self("cuMemFree_v2", memory) for memory in pool])

    def __call__(self, name, *arguments):
        if code := getattr(self.library, name)(*arguments):
            raise SystemExit(f"{name} returned {code}")

    def kernel(self, name):
        function = ctypes.c_void_p()
        self("cuModuleGetFunction", ctypes.byref(function), self.module, name)
        return function


driver = functools.cache(Driver)


class Thing:
    """Any object of a framework, with memory from a pool. It has all attributes; each call and operation launches a
    kernel."""
    memory = None

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Thing()

    def __call__(self, *_, kernel=None, **__):
        shape = [ctypes.c_uint(1)] * 6
        driver()("cuLaunchKernel", kernel or driver().function, *shape, 0, driver().stream, none, none)
        made = Thing()
        made.memory = pool.pop() if pool else ctypes.c_void_p()
        if not made.memory:
            driver()("cuMemAlloc_v2", ctypes.byref(made.memory), ctypes.c_size_t(SIZE))
        return made

    __add__ = __mul__ = __matmul__ = __getitem__ = __call__

    def __del__(self):
        if self.memory:
            pool.append(self.memory)

    def copied(self, name):
        host, size = ctypes.create_string_buffer(SIZE), ctypes.c_size_t(SIZE)
        driver()(name, *((host, self.memory, size) if "DtoH" in name else (self.memory, host, size)))
        return self

    def item(self):
        self.copied("cuMemcpyDtoH_v2")
        return 0.0

    get = item

    def cuda(self):
        return (self if self.memory else self()).copied("cuMemcpyHtoD_v2")

    def synchronize(self):
        driver()("cuCtxSynchronize")

    block_until_ready = synchronize

    def replay(self):
        driver()("cuGraphLaunch", self.exec, none)


class Stream:
    def __init__(self):
        self.stream = ctypes.c_void_p()
        driver()("cuStreamCreate", ctypes.byref(self.stream), ctypes.c_uint(1))


@contextlib.contextmanager
def on(stream):
    driver().stream, before = stream.stream, driver().stream
    yield
    driver().stream = before


@contextlib.contextmanager
def captured(into):
    stream, graph, into.exec = Stream(), ctypes.c_void_p(), ctypes.c_void_p()
    with on(stream):
        driver()("cuStreamBeginCapture_v2", stream.stream, 0)
        yield
        driver()("cuStreamEndCapture", stream.stream, ctypes.byref(graph))
    driver()("cuGraphInstantiateWithFlags", ctypes.byref(into.exec), graph, ctypes.c_ulonglong(0))


def module(name, **members):
    sys.modules[name] = Thing()
    vars(sys.modules[name]).update(members)
    return sys.modules[name]


def unchanged(function):
    return function


class Default(Thing):
    def wait_stream(self, other):
        driver()("cuStreamSynchronize", other.stream)


cuda = module("torch.cuda", Stream=Stream, stream=on, graph=captured, synchronize=Thing().synchronize, CUDAGraph=Thing,
              current_stream=Default)
# sigmoid: looks its kernel up at each call, so that tools that started later learn its name, too.
module("torch", cuda=cuda, compile=unchanged, sigmoid=lambda *_: Thing()(kernel=driver().kernel(b"sigmoid")),
       distributed=module("torch.distributed"))
module("jax", jit=unchanged, devices=lambda: [types.SimpleNamespace(platform="gpu")], numpy=module("jax.numpy"))
module("triton", language=module("triton.language"), jit=lambda function: Thing())
module("cupy", cuda=Thing())
