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

# Runtime cases for features that depend on the kernel: tiers, programs with many branches, cgroups and containers,
# stacks, late loading, exits. All runtime cases would take an hour in an emulated machine.
chosen = {
    "test_tiers": ["system_wide[tracefs]", "system_wide[multi]", "one_process[perf]"],
    "test_counts": ["every_driver_function[latency]"],
    "test_copies": ["by_default", "tagged_addresses"],
    "test_returns": ["allocations[tracefs]", "allocations[multi]"],
    "test_left": ["in_each_part", "short_wait", "within_a_wait"],
    "test_allocs": ["every_driver_function[held]", "tagged_addresses"],
    "test_waits": ["tiers_are_equal[tracefs]"],
    "test_graphs": ["every_driver_function"],
    "test_budget": None,  # all cases
    "test_info": ["ways_of_attaching", "cudalaunch", "nvioctl"],
    "test_cudagap": ["block_reasons[pipe, 1]", "block_reasons[fault, 1]", "jumped_out_of_a_call", "throttled[alone]"],
    "test_cudagap_around": ["a_quota"],
    "test_cudagap_gaps": ["lines[pipe, 1]", "histograms[threads]"],
    "test_cudagap_wakers": ["a_chain"],
    "test_ncclwait": ["system_wide"],
    "test_overflow": ["rows_are_freed[entry]"],
    "test_user_stacks": ["every_frame[near]", "every_frame[deepest]", "equals_the_programs_own_stack", "above_48_bits"],
    "test_names": ["user_stacks"],
    "test_layers": ["both_alone[entry]", "both_alone[latency]", "through_a_protected_runtime[entry]",
                    "through_a_protected_runtime[latency]"],
    "test_hostile_files": ["clean_after_a_killed_run"],
    "test_late": ["tool_first[both]", "a_process_that_has_no_library_yet"],  # imports test_hostile_files
    "test_earlier": ["each_driver_function[cuCtxSynchronize-asleep]", "each_driver_function[cuStreamSynchronize_ptsz-asleep]",
                     "each_runtime_function[cudaMemcpy-workload13]", "at_the_runtime[cudaMemcpy]", "threads", "no_false_alarm[launches]"],
    "test_python": ["system_wide", "by_line", f"of_the_system[python3.{sys.version_info.minor}]"],
    # This module imports test_python, whose cases must be chosen first.
    "test_python_places": [f"of_another_release[{path.name}]" for path in pathlib.Path("/elsewhere").glob("*/usr/bin/python3.*[0-9]")],
}


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
