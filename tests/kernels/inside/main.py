# SPDX-License-Identifier: Apache-2.0
"""main.py [PATTERN...]: runs the cases of this folder and some of the runtime cases, inside the guest."""
import importlib
import os
import pathlib
import sys

sys.dont_write_bytecode = True
here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parents[1] / "runtime")]

import harness  # noqa: E402
import short  # noqa: E402

# Depend on the guest: the system's Python, and a Python of another release. test_python_places imports test_python,
# whose cases must be chosen first.
chosen = dict(short.ON_OTHER_KERNELS)
chosen["test_python"] = [*chosen["test_python"], f"of_the_system[python3.{sys.version_info.minor}]"]
chosen["test_python_places"] = [f"of_another_release[{path.name}]"
                                for path in pathlib.Path("/elsewhere").glob("*/usr/bin/python3.*[0-9]")]


def choose():
    for module, names in chosen.items():
        first = len(harness.cases)
        importlib.import_module(module)
        prefix = module.removeprefix("test_")
        if names is None:
            continue
        wanted = {f"{prefix}.{name}" for name in names}
        harness.cases[first:] = [case for case in harness.cases[first:] if case.name in wanted]
        missing = wanted - {case.name for case in harness.cases[first:]}
        if missing:
            sys.exit(f"no such cases: {missing}")


# Runs only in the guest, since cases fail if another program interferes.
tier = os.environ.get("GPUSNOOP_TIER")
if not tier:
    sys.exit("main.py: do not run this directly; use tests/kernels/run")
if tier == "none":
    import too_old  # noqa: F401
else:
    for path in sorted(here.glob("test_*.py")):
        importlib.import_module(path.stem)
    choose()
    if tier in ("session", "multi"):
        import locked  # noqa: F401 - last: locking down cannot be undone
sys.exit(harness.run_all(*sys.argv[1:], at_once=1))  # the cases share one driver
