// SPDX-License-Identifier: Apache-2.0
// Steps that control other steps: time, threads, processes, signals.
#include "session.hpp"
#include "steps.hpp"
#include "symbols.hpp"

#include <alloca.h>
#include <barrier>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <ctime>
#include <memory>
#include <pthread.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace workload {
namespace {

timespec span(uint64_t ms)
{
    return {static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000 * 1'000'000)};
}

std::vector<std::thread> in_background; // started by the main thread
thread_local sigjmp_buf leave_target;
bool (*interrupts_sleep)() = nullptr;
thread_local const Steps* interrupting = nullptr;

// A timer that signals this thread after `ms` milliseconds, and then every `again_ms` milliseconds (0: only once).
class Alarm {
public:
    Alarm(uint64_t ms, uint64_t again_ms, void (*handler)(int))
    {
        struct sigaction action {};
        action.sa_handler = handler;
        sigaction(SIGALRM, &action, nullptr);
        sigevent to{};
        to.sigev_notify = SIGEV_THREAD_ID;
        to.sigev_signo = SIGALRM;
        to._sigev_un._tid = gettid();
        const itimerspec after{.it_interval = span(again_ms), .it_value = span(ms)};
        if (timer_create(CLOCK_MONOTONIC, &to, &timer_) || timer_settime(timer_, 0, &after, nullptr))
            fail("cannot set a timer");
    }
    ~Alarm() { timer_delete(timer_); }
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;

private:
    timer_t timer_{};
};

void require_main_thread(const Step& step)
{
    if (gettid() != getpid())
        wrong(step, "only allowed in the main thread");
}

void require_no_background(const Step& step)
{
    require_main_thread(step);
    if (!in_background.empty())
        wrong(step, "not allowed while background threads run: join them first");
}

} // namespace

// Each thread runs the block. All threads start at the same time.
void threads(const Step& step)
{
    auto count = static_cast<ptrdiff_t>(step.number(0));
    int inherited = device();
    std::barrier<> all_ready(count);
    std::vector<std::thread> list;
    for (ptrdiff_t i = 0; i < count; i++)
        list.emplace_back([&] {
            inherit_device(inherited);
            all_ready.arrive_and_wait();
            run(step.body);
        });
    for (auto& thread : list)
        thread.join();
}

// Runs the block in another thread, while this thread continues.
void background(const Step& step)
{
    require_main_thread(step);
    in_background.emplace_back([inherited = device(), &step] {
        inherit_device(inherited);
        run(step.body);
    });
}

void join(const Step& step)
{
    require_main_thread(step);
    for (auto& thread : in_background)
        thread.join();
    in_background.clear();
}

// The main thread exits; the process exits after the last background thread.
void exit_main(const Step& step)
{
    require_main_thread(step);
    std::thread([others = std::move(in_background)]() mutable {
        for (auto& thread : others)
            thread.join();
        write_truth();
    }).detach();
    pthread_exit(nullptr);
}

void fork_child(const Step& step)
{
    require_no_background(step);
    pid_t child = fork();
    if (child < 0)
        fail("cannot fork");
    if (!child) {
        forget();
        run(step.body);
        write_truth();
        exit(0); // not _exit(), because an injected profiler has exit handlers that must run
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        kill(child, SIGTERM); // a signal to this process also stops the child
    if (status)
        fail("a forked child failed");
}

// exec [PROGRAM] ... end: this process executes PROGRAM, which runs the block. PROGRAM is another workload program in
// the same folder; default: this one. Later steps do not run. In a background thread, exec ends all other threads; the
// main thread must be idle.
void exec_image(const Step& step)
{
    if (gettid() == getpid())
        require_no_background(step);
    write_truth();
    char self[4096] = {};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        fail("cannot read /proc/self/exe");
    std::string program = self;
    if (!step.words.empty())
        program = program.substr(0, program.rfind('/') + 1) + step.words[0];
    std::string script = render(step.body);
    execl(program.c_str(), program.c_str(), "--append", "--truth", truth_path().c_str(), script.c_str(), nullptr);
    fail("cannot execute " + program);
}

// Runs the block BYTES further down the stack. A tracer that only compares stack pointers mistakes calls of the block
// for nested calls.
[[gnu::noinline]] void deeper(const Step& step)
{
    size_t bytes = step.words.empty() ? 8192 : step.number(0);
    auto frame = static_cast<volatile char*>(alloca(bytes));
    frame[0] = 1;
    run(step.body);
    frame[0] = 0; // keeps the frame, and prevents a tail call
}

// leave MS ... end: from MS milliseconds on, a timer signals the thread every millisecond. Once the signal interrupts a
// sleep in a call, the handler jumps out of that call, as crash handlers and interpreters that handle Ctrl-C do. The
// truth does not contain that call.
void leave(const Step& step)
{
    interrupts_sleep = reinterpret_cast<bool (*)()>(symbol("standin_interrupts_sleep"));
    const Alarm alarm(step.number(0), 1, [](int) {
        if (interrupts_sleep())
            siglongjmp(leave_target, 1);
    });
    if (sigsetjmp(leave_target, 1) == 0) {
        run(step.body);
        fail("the steps inside leave ended before the signal");
    }
}

// interrupt MS STEPS end: after MS milliseconds, a signal handler runs the steps, even if the thread is in a call. If
// that call sleeps, the signal ends its sleep.
void interrupt(const Step& step)
{
    static std::vector<std::unique_ptr<Alarm>> set;
    interrupting = &step.body;
    set.push_back(std::make_unique<Alarm>(step.number(0), 0, [](int) { run(*interrupting); }));
}

} // namespace workload
