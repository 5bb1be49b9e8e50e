// SPDX-License-Identifier: Apache-2.0
// Threads that launch, are blocked for a known reason for a while, and launch again. Prints the measured times, for
// comparison with a tracer's report:
//     gaps REASON MS [THREADS [FILE]]
// Creates the file "up" when ready, waits for the file "go", prints one line of JSON per thread, and exits. With FILE,
// it waits for the file "end" before it exits.
#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <linux/userfaultfd.h>
#include <map>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
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

// Time that this thread has waited for a CPU. The file stays open, since opening it may block.
int64_t queued_ns()
{
    thread_local const int file = checked(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC), "schedstat");
    std::array<char, 64> text{};
    checked(static_cast<int>(pread(file, text.data(), text.size() - 1, 0)), "read schedstat");
    return strtoll(strchr(text.data(), ' '), nullptr, 10);
}

// Measures an interval: wall-clock time, time on a CPU, and time waiting for a CPU.
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
    // Reads the clocks again if the thread waited for a CPU between two readings, so that the values belong to the same
    // moment.
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

// Blocks in a read until another thread writes.
void read_late_write(Watch& watch, int reader, int writer, milliseconds time)
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
    read_late_write(watch, ends[0], ends[1], time);
}

void hold_socket(Watch& watch, milliseconds time)
{
    int ends[2];
    checked(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    read_late_write(watch, ends[0], ends[1], time);
}

// Blocks in a read from a device file that belongs to no GPU driver.
void hold_terminal(Watch& watch, milliseconds time)
{
    const int master = checked(posix_openpt(O_RDWR | O_NOCTTY), "posix_openpt");
    checked(grantpt(master) | unlockpt(master), "unlockpt");
    std::array<char, 64> name{};
    checked(-ptsname_r(master, name.data(), name.size()), "ptsname");
    read_late_write(watch, checked(open(name.data(), O_RDWR | O_NOCTTY), name.data()), master, time);
}

void hold_child(Watch& watch, milliseconds time)
{
    // The child shares the memory (CLONE_VM): fork() would copy the page tables, and for many children at once this
    // would delay the parent's threads, too.
    alignas(16) std::array<char, 16384> stack;
    const auto sleep = [](void* argument) {
        const milliseconds time = *static_cast<milliseconds*>(argument);
        const timespec length{.tv_sec = time / 1s, .tv_nsec = time % 1s / 1ns};
        return static_cast<int>(syscall(SYS_nanosleep, &length, nullptr));
    };
    const pid_t child = checked(clone(sleep, stack.data() + stack.size(), CLONE_VM | SIGCHLD, &time), "clone");
    watch.start();
    waitpid(child, nullptr, 0);
    watch.stop();
}

// A page fault that userfaultfd resolves late.
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

// A wait that ends by its own timeout: no signal, no data.
template<class Wait>
void hold_until(Watch& watch, milliseconds time, clockid_t clock, const Wait& wait)
{
    const int64_t end = clock_ns(clock) + time / 1ns;
    const timespec until{.tv_sec = end / 1'000'000'000, .tv_nsec = end % 1'000'000'000};
    watch.start();
    wait(until);
    watch.stop();
}

void hold_condition(Watch& watch, milliseconds time)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    hold_until(watch, time, CLOCK_REALTIME, [&](const timespec& until) {
        while (pthread_cond_timedwait(&condition, &mutex, &until) != ETIMEDOUT)
            ;
    });
    pthread_mutex_unlock(&mutex);
}

void hold_semaphore(Watch& watch, milliseconds time)
{
    sem_t semaphore;
    checked(sem_init(&semaphore, 0, 0), "sem_init");
    hold_until(watch, time, CLOCK_REALTIME, [&](const timespec& until) { sem_timedwait(&semaphore, &until); });
    sem_destroy(&semaphore);
}

void hold_epoll(Watch& watch, milliseconds time)
{
    const int set = checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    epoll_event none{};
    watch.start();
    epoll_wait(set, &none, 1, static_cast<int>(time.count()));
    watch.stop();
    close(set);
}

void hold_receive(Watch& watch, milliseconds time)
{
    int ends[2];
    checked(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    const timeval length{.tv_sec = time / 1s, .tv_usec = time % 1s / 1us};
    checked(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &length, sizeof(length)), "SO_RCVTIMEO");
    char byte = 0;
    watch.start();
    recv(ends[0], &byte, 1, 0);
    watch.stop();
    close(ends[0]);
    close(ends[1]);
}

// A wait that ends by a timer's signal.
void hold_alarm(Watch& watch, milliseconds time)
{
    struct sigaction action {};
    action.sa_handler = [](int) {};
    checked(sigaction(SIGALRM, &action, nullptr), "sigaction");
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGALRM;
    event._sigev_un._tid = gettid();
    timer_t timer{};
    checked(timer_create(CLOCK_MONOTONIC, &event, &timer), "timer_create");
    const itimerspec length{.it_interval = {}, .it_value = {.tv_sec = time / 1s, .tv_nsec = time % 1s / 1ns}};
    checked(timer_settime(timer, 0, &length, nullptr), "timer_settime");
    watch.start();
    poll(nullptr, 0, -1);
    watch.stop();
    timer_delete(timer);
}

// A wait that ends because a timerfd expires, not by its own timeout.
void hold_timer_file(Watch& watch, milliseconds time)
{
    pollfd timer{
        .fd = checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), "timerfd"), .events = POLLIN, .revents = 0};
    const itimerspec length{.it_interval = {}, .it_value = {.tv_sec = time / 1s, .tv_nsec = time % 1s / 1ns}};
    checked(timerfd_settime(timer.fd, 0, &length, nullptr), "timerfd_settime");
    watch.start();
    poll(&timer, 1, -1);
    watch.stop();
    close(timer.fd);
}

// A wait that ends by a TCP packet, which a softirq delivers.
void hold_loopback(Watch& watch, milliseconds time)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    const int listener = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    checked(bind(listener, any, size), "bind");
    checked(getsockname(listener, any, &size), "getsockname");
    checked(listen(listener, 1), "listen");
    const int writer = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    checked(connect(writer, any, size), "connect");
    const int reader = checked(accept(listener, nullptr, nullptr), "accept");
    close(listener);
    read_late_write(watch, reader, writer, time);
}

// A slow read: the test provides FILE on a file system that delays reads.
void hold_file(Watch& watch, int file)
{
    char byte = 0;
    watch.start();
    checked(static_cast<int>(pread(file, &byte, 1, 0)), "read the file");
    watch.stop();
}

// A page fault on a mapping of FILE, whose file system delays reads.
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
            {"condition", hold_condition},
            {"semaphore", hold_semaphore},
            {"epoll", hold_epoll},
            {"receive", hold_receive},
            {"alarm", hold_alarm},
            {"timer file", hold_timer_file},
            {"loopback", hold_loopback},
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

struct Measured {
    int64_t begin = 0; // time before the first call
    pid_t tid = 0;
    Watch held, called; // `called`: from the first call's return to the last call's return
};

void run_thread(const Hold& hold, milliseconds time, Measured& measured)
{
    measured.tid = gettid();
    measured.begin = clock_ns(CLOCK_MONOTONIC);
    launch();
    measured.called.start();
    hold(measured.held, time);
    launch();
    measured.called.stop();
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
    std::vector<Measured> measured(argc > 3 ? static_cast<size_t>(atoi(argv[3])) : 1);
    fclose(fopen("up", "w"));
    while (!std::filesystem::exists("go"))
        std::this_thread::sleep_for(1ms);
    std::vector<std::thread> threads;
    for (Measured& one : measured)
        threads.emplace_back([&, time] { run_thread(hold->second, time, one); });
    for (std::thread& thread : threads)
        thread.join();
    const int64_t end = clock_ns(CLOCK_MONOTONIC);
    for (const Measured& one : measured) {
        const Watch::Times &held = one.held.took(), &called = one.called.took();
        printf(
            R"({"tid":%d,"held_ns":%ld,"cpu_ns":%ld,"queued_ns":%ld,"all_queued_ns":%ld,"wall_ns":%ld,"around_ns":%ld})"
            "\n",
            one.tid, held.wall, held.cpu, held.queued, called.queued, called.wall, end - one.begin - called.wall);
    }
    while (argc > 4 && !std::filesystem::exists("end")) // stays alive so that tests can read its mappings
        std::this_thread::sleep_for(1ms);
}
