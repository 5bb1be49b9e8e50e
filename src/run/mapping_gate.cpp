// SPDX-License-Identifier: Apache-2.0
#include "run/mapping_gate.hpp"

#include "base/error.hpp"
#include "base/machine.hpp"
#include "base/privileges.hpp"
#include "reader/message.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <map>
#include <new>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

namespace gpusnoop {

void fields(auto& each, same_as_const<MappingGate::Event> auto& e)
{
    each(e.what, e.id, e.tid, e.path, e.error);
}

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// The gatekeeper releases a paused process after this time. The time is longer than the 3 s after which the tool kills
// a helper that hangs on a file; the tool then releases the process itself.
constexpr auto hold_timeout = 10s;
// limit on paused processes, because each costs the tool a file descriptor; further processes are not paused
constexpr size_t held_max = 256;

struct Order {
    bool open = false;
    uint64_t id = 0;
};

void fields(auto& each, same_as_const<Order> auto& o)
{
    each(o.open, o.id);
}

// A system call that each new program makes early: a dynamic program in ld.so, a static program in its libc
// (__tls_init_tp of glibc, __init_tp of musl). At that time the libraries that the program is linked with are mapped,
// but none of their code has run.
constexpr uint32_t first_call = SYS_set_tid_address;

std::vector<sock_filter> filter_of(bool holds_exec)
{
    constexpr auto low_half = [](size_t argument) {
        return static_cast<uint32_t>(offsetof(seccomp_data, args) + argument * sizeof(uint64_t));
    };
    const sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const sock_filter ask = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    std::vector<sock_filter> program = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, machine::audit_arch, 1, 0),
        allow,
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    };
    if (holds_exec)
        program.insert(program.end(), {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first_call, 0, 1), ask});
    program.insert(program.end(), {
                                      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
                                      allow,
                                      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_half(2)),
                                      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
                                      allow,
                                      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_half(3)),
                                      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1),
                                      allow,
                                      ask,
                                  });
    return program;
}

// Returns the filter's listener, or an empty Fd with errno set.
Fd install_filter(bool holds_exec)
{
    std::vector<sock_filter> program = filter_of(holds_exec);
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    // Kernels before 5.16 (2f46993d83ff) enable speculation mitigations for any program with a seccomp filter, which
    // slows it down; SPEC_ALLOW prevents that. WAIT_KILLABLE_RECV (5.19, c2aa2dfef243) prevents signals from
    // interrupting a paused call, which would then be restarted.
    constexpr uint64_t flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    for (const uint64_t more : {uint64_t{SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV}, uint64_t{0}}) {
        const long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | more, &filter);
        if (listener >= 0 || errno != EINVAL)
            return Fd(static_cast<int>(listener));
    }
    return {};
}

std::string link_target(const std::string& link)
{
    std::array<char, 4096> target{};
    const ssize_t size = readlink(link.c_str(), target.data(), target.size());
    return size > 0 ? std::string(target.data(), static_cast<size_t>(size)) : std::string();
}

class Gatekeeper {
public:
    Gatekeeper(const MappingGate::Policy& policy, Connection tool, Connection child)
        : policy_(policy), tool_(std::move(tool)), child_(std::move(child))
    {}
    void serve();

private:
    bool take_listener();
    bool filter_is_unused() const;
    void hold_or_answer();
    bool hold(const seccomp_notif& call);
    void answer(uint64_t id) const;
    void obey();
    void open();
    void expire();
    bool report(const MappingGate::Event& event, int file = -1) { return tool_.send(message_of(event), file, true); }

    struct Held {
        Clock::time_point until;
        MappingGate::Event event;
    };

    const MappingGate::Policy& policy_;
    Connection tool_, child_;
    Fd listener_;
    bool open_ = false;
    std::map<uint64_t, Held> held_;
};

// Waits until the child sends the listener of its seccomp filter. Returns false if the child has exited, or if the
// kernel refused the filter.
bool Gatekeeper::take_listener()
{
    auto message = child_.receive();
    if (!message)
        return false;
    if (!message->file) {
        report({.what = MappingGate::What::refused,
                .path = {},
                .error = read_message<int>(message->bytes).value_or(0),
                .file = {}});
        return false;
    }
    listener_ = std::move(message->file);
    child_.send("go");
    child_ = Connection(Fd());
    return true;
}

bool Gatekeeper::filter_is_unused() const
{
    pollfd listener{listener_.get(), POLLIN, 0};
    return poll(&listener, 1, 0) > 0 && (listener.revents & (POLLHUP | POLLERR));
}

void Gatekeeper::serve()
{
    const bool any = take_listener();
    while (any && !filter_is_unused()) {
        std::array<pollfd, 2> either{pollfd{listener_.get(), POLLIN, 0}, pollfd{tool_.descriptor(), POLLIN, 0}};
        int timeout = -1;
        for (const auto& [id, held] : held_) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(held.until - Clock::now());
            timeout = std::clamp(static_cast<int>(left.count()), 0, timeout < 0 ? INT32_MAX : timeout);
        }
        poll(either.data(), either.size(), timeout);
        try {
            if (either[0].revents & POLLIN)
                hold_or_answer();
            if (either[1].revents)
                obey();
            expire();
        } catch (const std::bad_alloc&) {
            // Releases the paused processes and pauses no more, as when the tool exits.
            open();
            tool_ = Connection(Fd());
        }
    }
    report({.what = MappingGate::What::ended, .path = {}, .file = {}});
}

void Gatekeeper::hold_or_answer()
{
    seccomp_notif call{};
    if (ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
        return; // the thread was killed meanwhile
    bool held = false;
    try {
        held = !open_ && held_.size() < held_max && hold(call);
    } catch (const std::bad_alloc&) { // the call is not paused
    }
    if (!held)
        answer(call.id);
}

// Keeps the call paused until the tool releases it. Returns false if the caller must let it continue at once instead.
bool Gatekeeper::hold(const seccomp_notif& call)
{
    MappingGate::Event event{.id = call.id, .tid = static_cast<pid_t>(call.pid), .path = {}, .file = {}};
    if (call.data.nr == static_cast<int>(first_call)) {
        event.what = MappingGate::What::exec;
    } else {
        const std::string link = fmt::format("/proc/{}/fd/{}", call.pid, static_cast<int>(call.data.args[4]));
        event.path = link_target(link);
        if (event.path.empty() || !policy_.holds(event.path))
            return false;
        event.file = Fd(::open(link.c_str(), O_PATH | O_CLOEXEC));
        if (!event.file || ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &call.id) != 0)
            return false;
    }
    if (!report(event, event.file.get()))
        return false;
    event.file = {};
    held_.emplace(call.id, Held{Clock::now() + hold_timeout, std::move(event)});
    return true;
}

void Gatekeeper::answer(uint64_t id) const
{
    seccomp_notif_resp answer{.id = id, .val = 0, .error = 0, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer); // fails if the thread was killed
}

// Carries out the tool's orders. If the tool has exited, opens the gate.
void Gatekeeper::obey()
{
    while (const auto message = tool_.receive(0ms)) {
        const auto order = read_message<Order>(message->bytes).value_or(Order{.open = true});
        if (order.open)
            open();
        else if (held_.erase(order.id))
            answer(order.id);
    }
    if (!tool_.closed())
        return;
    open();
    // If no process has the filter any more, keeps the connection: serve() then sends the `ended` event, for which the
    // tool waits.
    if (!filter_is_unused())
        tool_ = Connection(Fd());
}

void Gatekeeper::open()
{
    open_ = true;
    for (const auto& [id, held] : std::exchange(held_, {}))
        answer(id);
}

void Gatekeeper::expire()
{
    const auto now = Clock::now();
    for (auto next = held_.begin(); next != held_.end();) {
        auto& [id, held] = *next;
        if (now < held.until) {
            ++next;
            continue;
        }
        answer(id);
        held.event.what = MappingGate::What::expired;
        report(held.event);
        next = held_.erase(next);
    }
}

// Main function of the gatekeeper process, which may outlive the tool. Therefore it blocks all signals and has its own
// session.
[[noreturn]] void keep_gate(const MappingGate::Policy& policy, int tool, int child)
{
    // for reading the descriptors of other processes in /proc
    constexpr int capabilities[] = {CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH};
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    // another name than the tool's, so that killing the tool by name does not kill the gatekeeper
    prctl(PR_SET_NAME, "gpusnoop-gate");
    setsid();
    try { // closes all other descriptors inherited from the tool
        if (keep_only({tool, child}) && dup2(STDOUT_FILENO, STDERR_FILENO) >= 0 && chdir("/") == 0 &&
            keep_capabilities(capabilities))
            Gatekeeper(policy, Connection(Fd(Child::first_fd)), Connection(Fd(Child::first_fd + 1))).serve();
    } catch (const std::bad_alloc&) {
        _exit(1); // no filter is installed yet, so no process waits for an answer
    }
    _exit(0);
}

} // namespace

MappingGate::MappingGate(const Policy& policy) : holds_exec_(policy.holds_exec)
{
    Connection::Ends to_tool = Connection::pair(), to_child = Connection::pair();
    const int error = to_tool.error ? to_tool.error : to_child.error;
    gatekeeper_ = error ? -1 : fork();
    if (gatekeeper_ == 0)
        keep_gate(policy, to_tool.theirs.get(), to_child.theirs.get());
    if (gatekeeper_ < 0)
        throw Error("cannot start the program: " + errno_text(error ? error : errno));
    to_gatekeeper_ = Connection(std::move(to_tool.ours));
    for_child_ = std::move(to_child.ours);
}

MappingGate::~MappingGate()
{
    // until the shutdown below, the connection is closed only if the gatekeeper has exited
    const bool exited = closed();
    shutdown(to_gatekeeper_.descriptor(), SHUT_WR);
    constexpr auto patience = 1s;            // an answer normally takes less than a millisecond
    while (!ended_ && next_within(patience)) // even an exited gatekeeper may have left a last message
        ;
    if (ended_ || exited)
        waitpid(gatekeeper_, nullptr, 0);
}

bool MappingGate::enter()
{
    Connection gatekeeper(std::move(for_child_));
    const Fd listener = install_filter(holds_exec_);
    if (!listener)
        return gatekeeper.send(message_of(errno));
    return gatekeeper.send("listener", listener.get()) && gatekeeper.receive();
}

std::optional<MappingGate::Event> MappingGate::next_within(std::chrono::milliseconds longest)
{
    auto message = to_gatekeeper_.receive(longest);
    auto event = message ? read_message<Event>(message->bytes) : std::nullopt;
    if (event) {
        event->file = std::move(message->file);
        ended_ |= event->what == What::ended;
    }
    return event;
}

void MappingGate::release(uint64_t id)
{
    to_gatekeeper_.send(message_of(Order{.open = false, .id = id}), -1, true);
}

void MappingGate::open()
{
    to_gatekeeper_.send(message_of(Order{.open = true}), -1, true);
}

} // namespace gpusnoop
