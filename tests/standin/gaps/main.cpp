// SPDX-License-Identifier: Apache-2.0
// Threads that launch, are held up by one thing for a while, and launch again; and what each of them says of that:
//     gaps REASON MS [THREADS [FILE]]
// Makes the file "up" when it is ready, waits for "go", and ends with a line of JSON per thread on standard output;
// with FILE, once there is "end".
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <linux/userfaultfd.h>
#include <map>
#include <mutex>
#include <poll.h>
#include <sched.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data);

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

int checked(int result, const char* what)
{
    if (result >= 0)
        return result;
    perror(what);
    exit(1);
}

int64_t clock_ns(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// For how long this thread has waited for a CPU. Its file stays open: to open one may block.
int64_t queued_ns()
{
    thread_local const int file = checked(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC), "schedstat");
    std::array<char, 64> text{};
    checked(static_cast<int>(pread(file, text.data(), text.size() - 1, 0)), "read schedstat");
    return strtoll(strchr(text.data(), ' '), nullptr, 10);
}

// What lasts, by the clock; and how much of that its thread was on a CPU, and waited for one.
class Watch {
public:
    void start() { at_ = now(); }
    void stop()
    {
        const Times end = now();
        took_ = {end.wall - at_.wall, end.cpu - at_.cpu, end.queued - at_.queued};
    }
    struct Times {
        int64_t wall, cpu, queued;
    };
    const Times& took() const { return took_; }

private:
    // All of one moment: the thread has not waited for a CPU between them.
    static Times now()
    {
        for (int64_t queued = queued_ns();;) {
            const Times times{clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_THREAD_CPUTIME_ID), queued};
            queued = queued_ns();
            if (queued == times.queued)
                return times;
        }
    }

    Times at_{}, took_{};
};

using Hold = std::function<void(Watch&, milliseconds)>;

void hold_lock(Watch& watch, milliseconds time)
{
    std::mutex mutex;
    std::atomic<bool> held = false;
    std::thread other([&] {
        const std::lock_guard lock(mutex);
        held = true;
        std::this_thread::sleep_for(time);
    });
    while (!held)
        ;
    watch.start();
    mutex.lock();
    watch.stop();
    mutex.unlock();
    other.join();
}

// Reads what another thread writes later.
void feed_late(Watch& watch, int reader, int writer, milliseconds time)
{
    std::thread other([=] {
        std::this_thread::sleep_for(time);
        checked(static_cast<int>(write(writer, "\n", 1)), "write");
    });
    char byte = 0;
    watch.start();
    checked(static_cast<int>(read(reader, &byte, 1)), "read");
    watch.stop();
    close(reader);
    other.join();
    close(writer);
}

void hold_pipe(Watch& watch, milliseconds time)
{
    int ends[2];
    checked(pipe(ends), "pipe");
    feed_late(watch, ends[0], ends[1], time);
}

void hold_socket(Watch& watch, milliseconds time)
{
    int ends[2];
    checked(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    feed_late(watch, ends[0], ends[1], time);
}

// A device that no driver of a GPU has.
void hold_terminal(Watch& watch, milliseconds time)
{
    const int master = checked(posix_openpt(O_RDWR | O_NOCTTY), "posix_openpt");
    checked(grantpt(master) | unlockpt(master), "unlockpt");
    std::array<char, 64> name{};
    checked(-ptsname_r(master, name.data(), name.size()), "ptsname");
    feed_late(watch, checked(open(name.data(), O_RDWR | O_NOCTTY), name.data()), master, time);
}

void hold_child(Watch& watch, milliseconds time)
{
    // With this memory, as fork() copies it: many children at once would hold up their parent's threads by that, too.
    alignas(16) std::array<char, 16384> stack;
    const auto sleep = [](void* of) {
        const milliseconds time = *static_cast<milliseconds*>(of);
        const timespec length{.tv_sec = time / 1s, .tv_nsec = time % 1s / 1ns};
        return static_cast<int>(syscall(SYS_nanosleep, &length, nullptr));
    };
    const pid_t child = checked(clone(sleep, stack.data() + stack.size(), CLONE_VM | SIGCHLD, &time), "clone");
    watch.start();
    waitpid(child, nullptr, 0);
    watch.stop();
}

// A page that comes late.
void hold_fault(Watch& watch, milliseconds time)
{
    const int faults = checked(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC)), "userfaultfd");
    uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
    checked(ioctl(faults, UFFDIO_API, &api), "UFFDIO_API");
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uffdio_range range{.start = reinterpret_cast<uintptr_t>(page), .len = 4096};
    uffdio_register all{.range = range, .mode = UFFDIO_REGISTER_MODE_MISSING, .ioctls = 0};
    checked(ioctl(faults, UFFDIO_REGISTER, &all), "UFFDIO_REGISTER");
    std::thread other([=] {
        uffd_msg fault{};
        checked(static_cast<int>(read(faults, &fault, sizeof(fault))), "read a fault");
        std::this_thread::sleep_for(time);
        uffdio_zeropage zero{.range = range, .mode = 0, .zeropage = 0};
        checked(ioctl(faults, UFFDIO_ZEROPAGE, &zero), "UFFDIO_ZEROPAGE");
    });
    watch.start();
    *static_cast<volatile char*>(page) = 1;
    watch.stop();
    other.join();
    munmap(page, 4096);
    close(faults);
}

void hold_cpu(Watch& watch, milliseconds time)
{
    watch.start();
    const int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + time / 1ns;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        ;
    watch.stop();
}

void hold_sleep(Watch& watch, milliseconds time)
{
    watch.start();
    std::this_thread::sleep_for(time);
    watch.stop();
}

void hold_poll(Watch& watch, milliseconds time)
{
    watch.start();
    poll(nullptr, 0, static_cast<int>(time.count()));
    watch.stop();
}

// Whoever serves it takes the time.
void hold_file(Watch& watch, int file)
{
    char byte = 0;
    watch.start();
    checked(static_cast<int>(pread(file, &byte, 1, 0)), "read the file");
    watch.stop();
}

// The same, by a page of it in memory.
void hold_mapped(Watch& watch, int file)
{
    void* page = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
    checked(page == MAP_FAILED ? -1 : 0, "map the file");
    watch.start();
    [[maybe_unused]] const char byte = *static_cast<volatile char*>(page);
    watch.stop();
}

std::map<std::string, Hold> holds(int file)
{
    return {{"lock", hold_lock},
            {"sleep", hold_sleep},
            {"poll", hold_poll},
            {"pipe", hold_pipe},
            {"socket", hold_socket},
            {"terminal", hold_terminal},
            {"child", hold_child},
            {"fault", hold_fault},
            {"cpu", hold_cpu},
            {"file", [file](Watch& watch, milliseconds) { hold_file(watch, file); }},
            {"mapped", [file](Watch& watch, milliseconds) { hold_mapped(watch, file); }}};
}

void launch()
{
    cuLaunchHostFunc(
        nullptr, [](void*) {}, nullptr);
}

struct Said {
    int64_t begin = 0; // before its first call
    pid_t tid = 0;
    Watch held, called; // from its first call's return to its last one's
};

void be_held(const Hold& hold, milliseconds time, Said& said)
{
    said.tid = gettid();
    said.begin = clock_ns(CLOCK_MONOTONIC);
    launch();
    said.called.start();
    hold(said.held, time);
    launch();
    said.called.stop();
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 3)
        return 2;
    const auto known = holds(argc > 4 ? checked(open(argv[4], O_RDONLY), argv[4]) : -1);
    const auto hold = known.find(argv[1]);
    if (hold == known.end())
        return 2;
    const milliseconds time(atoi(argv[2]));
    std::vector<Said> said(argc > 3 ? static_cast<size_t>(atoi(argv[3])) : 1);
    fclose(fopen("up", "w"));
    while (!std::filesystem::exists("go"))
        std::this_thread::sleep_for(1ms);
    std::vector<std::thread> threads;
    for (Said& one : said)
        threads.emplace_back([&, time] { be_held(hold->second, time, one); });
    for (std::thread& thread : threads)
        thread.join();
    const int64_t end = clock_ns(CLOCK_MONOTONIC);
    for (const Said& one : said) {
        const Watch::Times &held = one.held.took(), &called = one.called.took();
        printf(
            R"({"tid":%d,"held_ns":%ld,"cpu_ns":%ld,"queued_ns":%ld,"all_queued_ns":%ld,"wall_ns":%ld,"around_ns":%ld})"
            "\n",
            one.tid, held.wall, held.cpu, held.queued, called.queued, called.wall, end - one.begin - called.wall);
    }
    while (argc > 4 && !std::filesystem::exists("end")) // what it has mapped may be asked for
        std::this_thread::sleep_for(1ms);
}
