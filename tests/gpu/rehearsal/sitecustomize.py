# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for PyTorch, CuPy, JAX and Triton: only the names that tests/gpu/samples use. They compute nothing, but
make driver calls like the real packages. Python imports this file automatically if its folder is in PYTHONPATH."""
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


def launched(kernel):
    one = ctypes.c_uint(1)
    driver()("cuLaunchKernel", kernel, one, one, one, one, one, one, 0, driver().stream, none, none)
    return Array()


def computed(*_, **__):
    return launched(driver().function)


def sigmoid(*_):
    """Looks the kernel up at each call, so that tools that started later learn its name, too."""
    return launched(driver().kernel(b"sigmoid"))


class Array:
    """Memory from a pool, as in frameworks; each operation launches a kernel."""

    def __init__(self, *_, **__):
        driver()  # created first, so that its exit handler runs while the memory exists
        self.memory = pool.pop() if pool else ctypes.c_void_p()
        if not self.memory:
            driver()("cuMemAlloc_v2", ctypes.byref(self.memory), ctypes.c_size_t(SIZE))

    def __del__(self):
        pool.append(self.memory)

    def copied(self, name):
        host, size = ctypes.create_string_buffer(SIZE), ctypes.c_size_t(SIZE)
        driver()(name, *((host, self.memory, size) if "DtoH" in name else (self.memory, host, size)))
        return self

    def item(self):
        self.copied("cuMemcpyDtoH_v2")
        return 0.0

    def cuda(self):
        return self.copied("cuMemcpyHtoD_v2")

    __call__ = __add__ = __mul__ = __matmul__ = __getitem__ = sum = backward = computed
    get, T = item, property(lambda self: self)

    def block_until_ready(self):
        driver()("cuCtxSynchronize")


class Network(Array):
    def parameters(self):
        return [self]


class Optimizer:
    def __init__(self, parameters, lr):
        pass

    zero_grad = step = lambda self: computed()


class Stream:
    def __init__(self, flags=1):
        self.stream = ctypes.c_void_p()
        driver()("cuStreamCreate", ctypes.byref(self.stream), ctypes.c_uint(flags))

    def wait_stream(self, other):
        driver()("cuStreamSynchronize", other.stream)


class Default(Stream):
    def __init__(self):
        self.stream = none

    def synchronize(self):
        driver()("cuCtxSynchronize")


@contextlib.contextmanager
def on(stream):
    driver().stream, before = stream.stream, driver().stream
    yield
    driver().stream = before


class Graph:
    def replay(self):
        driver()("cuGraphLaunch", self.exec, none)


@contextlib.contextmanager
def captured(into):
    stream, graph, into.exec = Stream(), ctypes.c_void_p(), ctypes.c_void_p()
    with on(stream):
        driver()("cuStreamBeginCapture_v2", stream.stream, 0)
        yield
        driver()("cuStreamEndCapture", stream.stream, ctypes.byref(graph))
    driver()("cuGraphInstantiateWithFlags", ctypes.byref(into.exec), graph, ctypes.c_ulonglong(0))


class Kernel:
    """Result of @triton.jit: kernel[grid](arguments)."""

    def __init__(self, function):
        pass

    def __getitem__(self, grid):
        return computed


def unchanged(function):
    return function


def nothing(*_, **__):
    pass


offered = {
    **dict.fromkeys(("torch.ones", "torch.randn", "torch.randint", "torch.empty_like", "cupy.arange", "jax.numpy.ones"), Array),
    **dict.fromkeys(("torch.sin", "torch.cos", "torch.relu", "torch.nn.functional.cross_entropy", "torch.distributed.all_reduce",
                     "cupy.sqrt", "jax.numpy.tanh"), computed),
    "torch.sigmoid": sigmoid,
    "torch.compile": unchanged, "jax.jit": unchanged, "triton.jit": Kernel, "torch.optim.SGD": Optimizer,
    **{f"torch.nn.{layer}": Network for layer in ("Sequential", "Conv2d", "ReLU", "Flatten", "Linear")},
    "torch.cuda.synchronize": lambda: Default().synchronize(), "torch.cuda.current_stream": Default, "cupy.cuda.Device": Default,
    "torch.cuda.Stream": Stream, "torch.cuda.stream": on, "torch.cuda.CUDAGraph": Graph, "torch.cuda.graph": captured,
    "torch.distributed.init_process_group": nothing, "torch.distributed.destroy_process_group": nothing, "cupy.float32": None,
    "jax.devices": lambda: [types.SimpleNamespace(platform="gpu")],
    "triton.cdiv": lambda a, b: -(-a // b), "triton.language.constexpr": int,
}


def module(name):
    """Creates a module and its parent packages."""
    if name not in sys.modules:
        sys.modules[name] = types.ModuleType(name)
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(module(parent), own, sys.modules[name])
    return sys.modules[name]


for path, value in offered.items():
    where, _, name = path.rpartition(".")
    setattr(module(where), name, value)
