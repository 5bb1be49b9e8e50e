# SPDX-License-Identifier: Apache-2.0
"""cudalaunch counts every launch once. tests/bpf/launch_test.cpp tests each function and mode."""
from harness import case, equal
from programs import trace
from truth import same_counts, same_shapes


@case(asan=True, gpu=True)
def one_thread():
    tool, truth = trace("launch vecadd 1009 grid=10,2,1 block=128; launch saxpy 503 grid=3 block=8,4,2 smem=512\n"
                        "launch reduce 251 grid=70000,3,2 block=1024; launch apply 2; launch scale 1 grid=2 block=7")
    same_counts(tool, truth)
    same_counts(tool, truth, by=("kernel", "pid", "comm"))
    same_shapes(tool, truth)


@case(gpu=True)
def eight_threads():
    tool, truth = trace("threads 8; repeat 3; launch vecadd 1000; end; end; launch vecadd 17; threads 3; name other\n"
                        "launch saxpy 100 stream=1; end", "--by", "thread,kernel")
    same_counts(tool, truth, by=("tid", "kernel", "pid"))
    equal(len({row["tid"] for row in tool.rows}), 12, "number of threads")


@case(gpu=True)
def a_million_and_three():
    tool, truth = trace("launch vecadd 1_000_003")
    same_counts(tool, truth)
    equal(tool.rows[0]["launches"], 1_000_003, "launches")
