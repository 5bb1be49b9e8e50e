// SPDX-License-Identifier: Apache-2.0
// A CUDA program that makes the calls of a script, and writes a truth file, which lists these calls.
//
//     workload [--truth FILE] [--banner] (SCRIPT | -f FILE)
//     workload --ptx KERNEL
#include "ptx.hpp"
#include "session.hpp"
#include "steps.hpp"
#include "truth.hpp"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace {

[[noreturn]] void usage()
{
    fprintf(stderr, "usage: workload [--truth FILE] [--banner] (SCRIPT | -f FILE)\n       workload --ptx KERNEL\n");
    exit(2);
}

std::string read_file(const char* path)
{
    std::ifstream in(path);
    std::ostringstream text;
    if (!in || !(text << in.rdbuf()))
        workload::fail(std::string("cannot read ") + path);
    return text.str();
}

} // namespace

int main(int argc, char** argv)
{
    if (argc == 3 && !strcmp(argv[1], "--ptx"))
        return fputs(workload::ptx_of(argv[2]).c_str(), stdout) < 0;
    std::string script, truth;
    bool append = false, banner = false, any = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--truth") && i + 1 < argc)
            truth = argv[++i];
        else if (!strcmp(argv[i], "-f") && i + 1 < argc)
            script += read_file(argv[++i]) + "\n", any = true;
        else if (!strcmp(argv[i], "--append")) // after exec: the truth file exists
            append = true;
        else if (!strcmp(argv[i], "--banner"))
            banner = true;
        else if (argv[i][0] == '-')
            usage();
        else
            script += std::string(argv[i]) + "\n", any = true;
    }
    if (!any)
        usage();
    static const auto steps = // static, because background threads use it after the main thread exits
        workload::parse(script, workload::find_step);
    if (banner)
        fprintf(stderr, "stand-in CUDA driver: no GPU work is done\n");
    workload::stop_on_signals();
    workload::open_truth(truth, append);
    workload::run(steps);
    workload::join({});
    workload::write_truth();
}
