// SPDX-License-Identifier: Apache-2.0
// Steps that order other steps, in time, in threads and in processes.
#include "session.hpp"
#include "steps.hpp"
#include "symbols.hpp"

#include <alloca.h>
#include <barrier>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace workload {
namespace {

timespec span(uint64_t ms)
{
    return {static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000 * 1'000'000)};
}

void sleep_for(uint64_t ms)
{
    timespec t = span(ms);
    while (nanosleep(&t, &t) && errno == EINTR && !stopping())
        ;
}

double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::vector<std::thread> in_background; // of the first thread
thread_local sigjmp_buf left_by;
bool (*interrupts_sleep)() = nullptr;
thread_local const Steps* interrupting = nullptr;

// A signal for this thread in so many milliseconds, and then as often; 0: once.
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

void only_in_the_first_thread(const Step& step)
{
    if (gettid() != getpid())
        wrong(step, "not inside threads");
}

void only_alone(const Step& step)
{
    only_in_the_first_thread(step);
    if (!in_background.empty())
        wrong(step, "not while threads run in the background: join them first");
}

} // namespace

// Each thread runs the block; none starts before all are ready.
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

// One more thread runs the block, while this one goes on.
void background(const Step& step)
{
    only_in_the_first_thread(step);
    in_background.emplace_back([inherited = device(), &step] {
        inherit_device(inherited);
        run(step.body);
    });
}

void join(const Step& step)
{
    only_in_the_first_thread(step);
    for (auto& thread : in_background)
        thread.join();
    in_background.clear();
}

// The main thread exits, and the process with the last thread in the background.
void exit_main(const Step& step)
{
    only_in_the_first_thread(step);
    std::thread([others = std::move(in_background)]() mutable {
        for (auto& thread : others)
            thread.join();
        write_truth();
    }).detach();
    pthread_exit(nullptr);
}

void repeat(const Step& step)
{
    for (uint64_t i = 0, n = step.number(0); i < n && !stopping(); i++)
        run(step.body);
}

void loop(const Step& step)
{
    for (double end = now() + static_cast<double>(step.number(0)); now() < end && !stopping();)
        run(step.body);
}

void forever(const Step& step)
{
    while (!stopping())
        run(step.body);
}

void fork_child(const Step& step)
{
    only_alone(step);
    pid_t child = fork();
    if (child < 0)
        fail("cannot fork");
    if (!child) {
        forget();
        run(step.body);
        write_truth();
        exit(0); // as others do: a profiler in it wants to be told
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        kill(child, SIGTERM); // whoever stops us means the child too
    if (status)
        fail("a forked child failed");
}

// exec [PROGRAM] ... end: this process becomes the program (another form beside this one, or this one again), which
// runs the block. Nothing after it runs. In a background thread it ends all others, of which the main one is idle.
void exec_image(const Step& step)
{
    if (gettid() == getpid())
        only_alone(step);
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

// The block runs this many bytes further down the stack: calls there look nested to who compares stack pointers only.
[[gnu::noinline]] void deeper(const Step& step)
{
    size_t bytes = step.words.empty() ? 8192 : step.number(0);
    auto frame = static_cast<volatile char*>(alloca(bytes));
    frame[0] = 1;
    run(step.body);
    frame[0] = 0; // keeps the frame, and keeps the call from becoming a jump
}

// leave MS ... end: after MS milliseconds, or once it sleeps in a call, a signal's handler jumps out of that, as a
// crash handler does, or an interpreter's Ctrl-C. The truth has nothing of that call.
void leave(const Step& step)
{
    interrupts_sleep = reinterpret_cast<bool (*)()>(symbol("standin_interrupts_sleep"));
    const Alarm alarm(step.number(0), 1, [](int) {
        if (interrupts_sleep())
            siglongjmp(left_by, 1);
    });
    if (sigsetjmp(left_by, 1) == 0) {
        run(step.body);
        fail("what was to be left has come to its end");
    }
}

// interrupt MS STEPS end: after MS milliseconds a signal's handler runs the steps, within whatever call the thread is
// in; a call that sleeps ends then.
void interrupt(const Step& step)
{
    static std::vector<std::unique_ptr<Alarm>> set;
    interrupting = &step.body;
    set.push_back(std::make_unique<Alarm>(step.number(0), 0, [](int) { run(*interrupting); }));
}

void sleep_ms(const Step& step)
{
    sleep_for(step.number(0));
}

void wait_for(const Step& step)
{
    while (!stopping() && access(step.word(0).c_str(), F_OK))
        sleep_for(1);
}

void touch(const Step& step)
{
    int fd = open(step.word(0).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        fail("cannot create " + step.word(0));
    close(fd);
}

void name_thread(const Step& step)
{
    prctl(PR_SET_NAME, unescaped(step.word(0)).c_str());
}

void open_library(const Step& step)
{
    open_driver(step.word(0, "libcuda.so.1"));
}

void set_device(const Step& step)
{
    use_device(static_cast<int>(step.number(0)));
}

} // namespace workload
