// SPDX-License-Identifier: Apache-2.0
// A program that makes the calls of a script on device nodes of GPU drivers, and writes a truth file.
//
//     ioctls [--truth FILE] (SCRIPT | -f FILE)
#include "call.hpp"
#include "devices.hpp"
#include "truth.hpp"

#include <csignal>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ioctls {
namespace {

using workload::Step;
using workload::with_block;

void threads(const Step& step)
{
    std::vector<std::thread> all;
    for (uint64_t i = 0; i < step.number(0); i++)
        all.emplace_back([&] { run(step.body); });
    for (auto& thread : all)
        thread.join();
}

void in_child(const Step& step)
{
    pid_t child = fork();
    if (child == 0) {
        forget_truth();
        forget_devices();
        run(step.body);
        close_devices();
        write_truth();
        _exit(0);
    }
    waitpid(child, nullptr, 0);
}

void map(const Step& step)
{
    for (uint64_t i = 0; i < workload::to_number(step, step.word(2, "1")); i++)
        map_device(step.word(0), step.number(1));
}

const workload::StepRow rows[] = {
    {"call", call, call_options},
    {"ioctl", number, call_options},
    {"killed", killed, "", with_block},
    {"xid", xid, "xid_pid xid_name xid_text"},
    {"open", [](const Step& s) { open_device(s.word(0)); }},
    {"close", [](const Step& s) { close_device(s.word(0)); }},
    {"mmap", map},
    {"threads", threads, "", with_block},
    {"fork", in_child, "", with_block},
};

} // namespace
} // namespace ioctls

int main(int argc, char** argv)
{
    const auto given = workload::arguments(argc, argv);
    const auto steps = workload::parse(given.script, ioctls::rows);
    workload::stop_on_signals(SA_RESTART);
    ioctls::open_truth(given.truth);
    workload::run(steps);
    ioctls::close_devices();
    ioctls::write_truth();
}
