// SPDX-License-Identifier: Apache-2.0
// A program that makes the calls of a script on device nodes of GPU drivers, and writes a truth file.
//
//     ioctls [--truth FILE] (SCRIPT | -f FILE)
#include "../workload/script.hpp"
#include "call.hpp"
#include "devices.hpp"
#include "stop.hpp"
#include "truth.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ioctls {
namespace {

using workload::Step;
using workload::Steps;

volatile sig_atomic_t stop_signal;

void run(const Steps&);

void sleep_ms(uint64_t ms)
{
    for (uint64_t i = 0; i < ms && !stopping(); i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void threads(const Step& step)
{
    std::vector<std::thread> all;
    for (uint64_t i = 0; i < step.number(0); i++)
        all.emplace_back([&] { run(step.body); });
    for (auto& thread : all)
        thread.join();
}

void loop(const Step& step)
{
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1000 * step.number(0));
    while (!stopping() && std::chrono::steady_clock::now() < end)
        run(step.body);
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

void wait_for(const Step& step)
{
    while (access(step.word(0).c_str(), F_OK) && !stopping())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

struct Row {
    const char* name;
    workload::Shape shape;
    void (*function)(const Step&);
};

const Row rows[] = {
    {"call", {false, call_options}, call},
    {"ioctl", {false, call_options}, number},
    {"killed", {true, ""}, killed},
    {"xid", {false, "device xid_pid xid_name xid_text"}, xid},
    {"open", {false, ""}, [](const Step& s) { open_device(s.word(0)); }},
    {"close", {false, ""}, [](const Step& s) { close_device(s.word(0)); }},
    {"mmap",
     {false, ""},
     [](const Step& s) {
         for (uint64_t i = 0; i < workload::to_number(s, s.word(2, "1")); i++)
             map_device(s.word(0), s.number(1));
     }},
    {"threads", {true, ""}, threads},
    {"repeat",
     {true, ""},
     [](const Step& s) {
         for (uint64_t i = 0; i < s.number(0) && !stopping(); i++)
             run(s.body);
     }},
    {"loop", {true, ""}, loop},
    {"forever",
     {true, ""},
     [](const Step& s) {
         while (!stopping())
             run(s.body);
     }},
    {"fork", {true, ""}, in_child},
    {"name", {false, ""}, [](const Step& s) { prctl(PR_SET_NAME, workload::unescaped(s.word(0)).c_str()); }},
    {"sleep", {false, ""}, [](const Step& s) { sleep_ms(s.number(0)); }},
    {"wait", {false, ""}, wait_for},
    {"touch", {false, ""}, [](const Step& s) { std::ofstream(s.word(0)); }},
};

const Row* find(const std::string& name)
{
    for (const Row& row : rows)
        if (name == row.name)
            return &row;
    return nullptr;
}

const workload::Shape* shape_of(const std::string& name)
{
    const Row* row = find(name);
    return row ? &row->shape : nullptr;
}

void run(const Steps& steps)
{
    for (const Step& step : steps)
        if (!stopping())
            find(step.name)->function(step);
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

void stop_on_signals()
{
    struct sigaction action {};
    action.sa_handler = [](int signal) { stop_signal = signal; };
    action.sa_flags = SA_RESTART;
    for (int signal : {SIGTERM, SIGINT})
        sigaction(signal, &action, nullptr);
}

bool stopping()
{
    return stop_signal;
}

} // namespace ioctls

int main(int argc, char** argv)
{
    std::string script, truth;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--truth") && i + 1 < argc)
            truth = argv[++i];
        else if (!strcmp(argv[i], "-f") && i + 1 < argc)
            script += ioctls::read_file(argv[++i]) + "\n";
        else if (argv[i][0] == '-') {
            fprintf(stderr, "usage: ioctls [--truth FILE] (SCRIPT | -f FILE)\n");
            return 2;
        } else
            script += std::string(argv[i]) + "\n";
    }
    auto steps = workload::parse(script, ioctls::shape_of);
    ioctls::stop_on_signals();
    ioctls::open_truth(truth);
    ioctls::run(steps);
    ioctls::close_devices();
    ioctls::write_truth();
}
