# SPDX-License-Identifier: Apache-2.0
"""Programs that run under the witness: the workload, and programs that use installed CUDA libraries."""
import os
import pathlib
import shutil

import machine
import witness
from bench import Wrong

here = pathlib.Path(__file__).parent
script = """dlopen; wait {folder}/go
launch vecadd 1009 grid=10,2 block=128; launch saxpy 503; launch vecadd 3 block=0; sync 1
threads 8; launch reduce 1000; end; sync 2 fn=cuStreamSynchronize; sync 5 fn=cuStreamQuery
alloc a 1000000; alloc b 70000; alloc m 5000 fn=cuMemAllocManaged; alloc p 9000 fn=cuMemHostAlloc
copy 7 fn=cuMemcpyHtoD_v2 dst=a bytes=1000; copy 5 fn=cuMemcpyDtoH_v2 src=a bytes=70001
copy 3 fn=cuMemcpyDtoDAsync_v2 src=a dst=b bytes=4096; copy 9 fn=cuMemcpyHtoDAsync_v2 dst=b bytes=64 stream=1
copy 4 fn=cuMemsetD8_v2 dst=a bytes=100; copy 2 fn=cuMemsetD32_v2 dst=a bytes=400; sync 1
free a; free m; free p; alloc s 30000 fn=cuMemAllocAsync; free s
free a again
build vecadd 3; graph 40; capture begin; launch saxpy 6 stream=1; capture end; graph 11; sync 1
graph create G; graph add G kernel 2; graph instantiate G X; graph launch X 5; graph update X G 3; graph upload X 2
graph setparams X kernel 4; graph execdestroy X; sync 1"""
# Children with their own driver: the driver is first called after the fork.
forking = """dlopen; wait {folder}/go
repeat 3; fork; launch saxpy 29; alloc c 4097; copy 13 fn=cuMemcpyHtoD_v2 dst=c bytes=5; free c; sync 3; end; end; launch vecadd 7; sync 1"""


def llama(build, driver):
    """llama.cpp's benchmark, if it and a model are installed. The witness's library delays it until the tools are
    tracing."""
    program, model = shutil.which("llama-bench"), os.environ.get("GPUSNOOP_LLAMA_MODEL")
    why = "no llama-bench in PATH" if not program else None if model else "GPUSNOOP_LLAMA_MODEL names no model"
    return ("llama_bench", [program, "-m", model, "-p", "64", "-n", "16", "-r", "1"],
            {"LD_PRELOAD": [driver, build / "gpu/witness.so"], "WITNESS_GATE": "{folder}/go"}, why)


def every_program(build, driver, python):
    """Yields (name, command, environment variables, None or why it cannot run)."""
    workload, ours = build / "standin/workload-dlopen", {"WORKLOAD_DEVICE": "1"}
    yield "workload", [workload, "--truth", "{folder}/truth", script], ours, None
    yield "workload_forks", [workload, "--truth", "{folder}/truth", forking], ours, None
    for path in sorted((here / "samples").glob("*_*.py")):
        yield path.stem, [python, here / "samples/gated.py", driver, path], {}, machine.missing_module(python, path.stem.partition("_")[0])
    for form in ("static", "shared"):
        path = build / f"gpu/launcher-{form}"
        yield (f"nvcc_{form}", [path], {"LD_PRELOAD": [driver]},
               None if path.exists() else "the bundle was made without nvcc")
    yield llama(build, driver)


def comparison(root, build, library, program, check):
    """A program's part of the report; None if there is no comparison."""
    name, command, variables, why = program
    if why:
        return check(f"witness.{name}", "skip", why)
    try:
        one = witness.compare(root, build, library, command, variables, forks=name == "workload_forks")
    except (Wrong, OSError, ValueError, KeyError) as error:
        return check(f"witness.{name}", "FAIL", str(error) if isinstance(error, Wrong) else repr(error))
    except witness.NoComparison as error:  # other programs may fail for reasons of their own
        return check(f"witness.{name}", "FAIL" if name.startswith("workload") else "skip", str(error))
    wrong = [f"{each['what']} of {each['name']}: {each['witness']} by CUPTI, {each['tools']} by the tools"
             for each in one["differences"]] + one["lost"]
    check(f"witness.{name}", "FAIL" if wrong else "ok", wrong and f"{len(wrong)} of {one['compared']}, {wrong[0]}" or None)
    return one


def run(root, given, cupti, unable, check, wanted, start):
    """Returns the witness's part of the report (None without CUPTI), and for each program a function that returns its
    part. `unable`: why the tools cannot trace or CUDA does not work; None if both work."""
    if not wanted("witness"):
        return None, {}
    library = witness.find(cupti, given.python)
    if not library:
        check("witness", "skip", "no libcupti.so in a toolkit or wheel; use --cupti FILE")
        return None, {}
    found, why = machine.json_of(here / "witness.py", root, library)
    if why:
        check("witness", "skip", f"{library}: {why}")
        return None, {}
    if wanted("witness.names"):
        check("witness.names", *(["ok"] if found["functions"] else ["FAIL", f"{library} has no function names"]))
    if unable:
        check("witness.programs", "skip", unable)
        return found | {"library": str(library)}, {}
    programs = [one for one in every_program(given.build, given.driver, given.python) if wanted(f"witness.{one[0]}")]
    return found | {"library": str(library)}, {
        one[0]: start(comparison, root, given.build, library, one, check) for one in programs}
