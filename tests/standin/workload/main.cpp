// SPDX-License-Identifier: Apache-2.0
// A CUDA program that makes the calls of a script, and writes a truth file, which lists these calls.
//
//     workload [--truth FILE] [--banner] (SCRIPT | -f FILE)
//     workload --ptx KERNEL
#include "ptx.hpp"
#include "steps.hpp"
#include "truth.hpp"

#include <cstdio>
#include <cstring>

int main(int argc, char** argv)
{
    if (argc == 3 && !strcmp(argv[1], "--ptx"))
        return fputs(workload::ptx_of(argv[2]).c_str(), stdout) < 0;
    const auto given = workload::arguments(argc, argv);
    static const auto steps = // static, because background threads use it after the main thread exits
        workload::parse(given.script, workload::steps());
    if (given.banner)
        fprintf(stderr, "stand-in CUDA driver: no GPU work is done\n");
    workload::stop_on_signals(0); // signals also end sleeps
    workload::open_truth(given.truth, given.append);
    workload::run(steps);
    workload::join({});
    workload::write_truth();
}
