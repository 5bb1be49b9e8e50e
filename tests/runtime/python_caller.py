# SPDX-License-Identifier: Apache-2.0
"""Program that launches from known lines of Python, for CPython 3.8 and later.

Usage: python_caller.py DRIVER LOCK SCENARIO[,SCENARIO] THREADS TIMES. LOCK: whether the GIL is "held" or "released"
during a launch. It waits for a line on standard input, makes its calls, prints them as JSON ([[frames, launches], ...],
each frame "function:line", innermost first), and waits for another line.

The frames come from the interpreter: note() records the stack on the same line as each launch."""
import collections
import ctypes
import functools
import json
import os
import sys
import threading
import time

driver = (ctypes.PyDLL if sys.argv[2] == "held" else ctypes.CDLL)(sys.argv[1])
cu_launch = driver.cuLaunchKernel
cu_launch.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
grid = (16, 1, 1, 1, 1, 1, 1, 0, None, None, None)
if sys.argv[2] == "released":  # stores the thread state under a second TLS key, like pybind11, which PyTorch uses
    ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
    key, libc = ctypes.c_uint(), ctypes.CDLL(None)
    libc.pthread_key_create(ctypes.byref(key), None)
    libc.pthread_setspecific(key, ctypes.c_void_p(ctypes.pythonapi.PyThreadState_Get()))
done = collections.Counter()
lock = threading.Lock()


def note(frame):
    frames = []
    while frame:
        code = frame.f_code
        frames.append("%s:%s" % (getattr(code, "co_qualname", code.co_name), frame.f_lineno))
        frame = frame.f_back
    with lock:
        done[tuple(frames)] += 1


def launch():
    note(sys._getframe()); cu_launch(*grid)


class Model:
    def __call__(self):
        return self.forward()

    def forward(self):
        self.layer()
        launch()

    def layer(self):
        x = (1 +
             (launch() or 2))
        return x


def generator():
    yield 1
    launch()
    yield 2


async def coroutine():
    launch()
    await another()


async def another():
    note(sys._getframe()); cu_launch(*grid)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **named):
        return function(*args, **named)
    return wrapper


@decorated
@functools.lru_cache(maxsize=0)
def cached():
    launch()


def größe_計算():
    launch()


def recursive(depth):
    if depth:
        recursive(depth - 1)
    else:
        launch()


def from_c(number):
    launch()
    return number


called_by_c = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: launch() or 0)
qsort = ctypes.CDLL(None).qsort
compared = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: launch() or 1)


def made(number):
    """Runs generated code once and frees it; the next code object may reuse its address."""
    text = "\n" * (number % 7) + "note(sys._getframe()); cu_launch(*grid)\n"
    exec(compile(text, "<made>", "exec"), {"note": note, "cu_launch": cu_launch, "sys": sys, "grid": grid})


def made_around(number):
    text = "\n" * (number % 5) + "def outer():\n    return launch()\nouter()\n"
    exec(compile(text, "<made>", "exec"), {"launch": launch})


def run(coro):
    try:
        coro.send(None)
    except StopIteration:
        pass


def sort():
    numbers = (ctypes.c_int * 2)(2, 1)
    qsort(numbers, 2, ctypes.sizeof(ctypes.c_int), compared)


def lines(i):
    note(sys._getframe()); cu_launch(*grid)
    for _ in range(2):
        note(sys._getframe()); cu_launch(*grid)


def library(i):
    import a_library  # from the test's site-packages
    a_library.launch(note, cu_launch, grid)
    a_library.launch(note, cu_launch, grid)


def waits(i):
    """Records sleeps instead of launches."""
    cu_launch(*grid)
    note(sys._getframe()); time.sleep(0.02)
    for _ in range(2):
        note(sys._getframe()); time.sleep(0.01)


second_code = """
import collections, ctypes, json, sys
cu_launch = ctypes.CDLL(%r).cuLaunchKernel
cu_launch.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
done = collections.Counter()
def note(frame):
    frames = []
    while frame:
        code = frame.f_code
        frames.append("%%s:%%s" %% (getattr(code, "co_qualname", code.co_name), frame.f_lineno))
        frame = frame.f_back
    done[tuple(frames)] += 1
def inner():
    note(sys._getframe()); cu_launch(16, 1, 1, 1, 1, 1, 1, 0, None, None, None)
def outer():
    for _ in range(5):
        inner()
outer()
open(%r, "a").write(json.dumps([[list(frames), launches] for frames, launches in done.items()]) + chr(10))
"""


def second(i):
    """A second interpreter makes five calls; the first makes one on the same line."""
    try:
        import _interpreters as interpreters
        other, run = interpreters.create("legacy"), interpreters.exec
    except ImportError:
        import _xxsubinterpreters as interpreters
        other, run = interpreters.create(**({} if sys.version_info < (3, 9) else {"isolated": False})), interpreters.run_string
    note(sys._getframe()); cu_launch(*grid); failure = run(other, second_code % (sys.argv[1], os.environ["RESULT"]))
    if failure:
        sys.exit(str(failure))


def forked(i):
    """A forked child launches too, and reports its calls to its parent."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        done.clear()
        launch()            # not counted: lets the tool notice the child
        time.sleep(1)
        done.clear()
        for _ in range(5):
            launch()
        os.write(writing, json.dumps([[list(frames), launches] for frames, launches in done.items()]).encode())
        time.sleep(2)       # time for the tool to read its stacks
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        for frames, launches in json.load(pipe):
            done[tuple(frames)] += launches
    os.wait()


scenarios = {
    "lines": lines,
    "plain": lambda i: launch(),
    "model": lambda i: Model()(),
    "generator": lambda i: list(generator()),
    "coroutine": lambda i: run(coroutine()),
    "decorated": lambda i: cached(),
    "names": lambda i: größe_計算(),
    "deep": lambda i: recursive(30),
    "deeper": lambda i: recursive(200),
    "callback": lambda i: sorted([2, 1], key=from_c),
    "map": lambda i: [x for x in map(from_c, [1])],
    "from_c": lambda i: sort(),
    "made": made,
    "made_around": made_around,
    "long": None,
}

# A function with a long line table.
long = "def long(i):\n" + "".join("    a%d = [i, %d, (i + %d) * 2]\n" % (n, n, n) for n in range(3000)) + "    launch()\n    return a1\n"
exec(compile(long, "long.py", "exec"))
scenarios["long"] = globals()["long"]
everything = list(scenarios)
scenarios.update(library=library, second=second, forked=forked, waits=waits)


def work(names, times):
    for i in range(times):
        for name in names:
            scenarios[name](i)


def main():
    names = everything if sys.argv[3] == "all" else sys.argv[3].split(",")
    threads, times = int(sys.argv[4]), int(sys.argv[5])
    print(sys.version_info[:2], flush=True)
    sys.stdin.readline()
    others = [threading.Thread(target=work, args=(names, times)) for _ in range(threads - 1)]
    for thread in others:
        thread.start()
    work(names, times)
    for thread in others:
        thread.join()
    print(json.dumps([[list(frames), launches] for frames, launches in done.items()]), flush=True)
    sys.stdin.readline()


main()
