// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include "../../kernels/stub/script.h"
#include "commands.hpp"
#include "devices.hpp"
#include "memory.hpp"
#include "truth.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace ioctls {
namespace {

using workload::Step;
using workload::stopping;

uint64_t now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

void pause_us(uint64_t us)
{
    timespec t{static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000 * 1000)};
    if (us)
        nanosleep(&t, nullptr);
}

struct Error { // an Xid
    uint32_t number, pid;
    std::string name, text;
};

Error error_of(const Step& step, uint32_t number)
{
    const bool self = step.option("xid_pid", "") == "self";
    const auto pid = self ? static_cast<uint32_t>(getpid()) : static_cast<uint32_t>(step.number("xid_pid", 0));
    return {number, pid, workload::unescaped(step.option("xid_name", "")),
            workload::unescaped(step.option("xid_text", "stand-in"))};
}

void put(stub_script& script, const Error& error)
{
    script.xid = error.number;
    script.xid_pid = error.pid;
    strncpy(script.xid_name, error.name.c_str(), sizeof script.xid_name - 1);
    strncpy(script.xid_text, error.text.c_str(), sizeof script.xid_text - 1);
}

void send_script(int fd, const stub_script& script)
{
    if (write(fd, &script, sizeof script) != sizeof script)
        workload::fail("the stub driver did not accept the expected results");
}

Memory::Kind kind_of(const Step& step, const char* option, Memory::Kind otherwise)
{
    Memory::Kind kind = otherwise;
    if (step.has(option) && !Memory::kind_of(step.option(option, ""), kind))
        workload::wrong(step, std::string(option) + " must be plain, cold, unmapped, null or kernel");
    return kind;
}

// A prepared call: its structures are filled, and it may be made repeatedly.
class Prepared {
public:
    Prepared(const Step&, Command, const std::string& device);
    CallRecord once() const;
    uint64_t delay_us() const { return step.number("delay_us", 0); }
    void expect(uint64_t calls) const;
    CallRecord as_killed() const;

private:
    void fill();
    void describe();

    const Step& step;
    Command command;
    std::string device_name;
    int fd;
    Memory main, parameters, wrapper;
    bool wrapped;
    CallRecord record; // the record of the call, with all fields that are known before the call
};

size_t parameters_size(const Step& step, const Command& command)
{
    uint64_t subject = step.number("subject", 0);
    return command.parameters == none ? 0 : memory_bytes(static_cast<uint32_t>(subject)) == none ? 16 : 128;
}

Prepared::Prepared(const Step& s, Command c, const std::string& device)
    : step(s), command(c), device_name(device), fd(ioctls::device(device)),
      main(kind_of(s, "arg", Memory::Plain), c.size),
      parameters(kind_of(s, "params", parameters_size(s, c) ? Memory::Plain : Memory::Null), parameters_size(s, c)),
      wrapper(Memory::Plain, 16), wrapped(s.has("xfer"))
{
    fill();
    describe();
}

void Prepared::fill()
{
    if (_IOC_TYPE(command.request) == 'F' && _IOC_NR(command.request) < 200) {
        main.put(0, 0xc1d00001u); // client
        main.put(4, 0x5c000001u); // parent
        main.put(8, 0x5c000002u); // object
    }
    auto subject = static_cast<uint32_t>(step.number("subject", 0));
    if (command.subject != none)
        main.put(command.subject, subject);
    uint64_t bytes = step.number("bytes", 0), stored = command.limit ? bytes - 1 : bytes;
    if (std::string(command.name) == "RM_VID_HEAP_CONTROL")
        command.bytes = heap_bytes(subject);
    if (command.bytes != none)
        main.put(command.bytes, stored);
    else if (command.parameters != none && memory_bytes(subject) != none)
        parameters.put(memory_bytes(subject), bytes);
    if (command.parameters != none)
        main.put(command.parameters, parameters.address());
    if (command.parameters_size != none)
        main.put(command.parameters_size, static_cast<uint32_t>(parameters_size(step, command)));
    wrapper.put(0, static_cast<uint32_t>(_IOC_NR(command.request)));
    wrapper.put(4, static_cast<uint32_t>(command.size));
    wrapper.put(8, main.address());
}

void Prepared::describe()
{
    bool plain_number = _IOC_TYPE(command.request) == 0;
    record.device = device_name;
    record.wrapped = wrapped;
    record.request = wrapped ? _IOC(_IOC_READ | _IOC_WRITE, 'F', 211, 16) : command.request;
    record.command = plain_number ? command.request : _IOC_NR(command.request);
    record.unreadable = command.size && !main.readable();
    if (command.parameters != none && main.readable() && main.holds(command.parameters, 8))
        record.parameters_unreadable = parameters_size(step, command) && !parameters.readable();
    if (!main.readable())
        return;
    if (main.holds(command.subject, 4))
        record.subject = main.get<uint32_t>(command.subject);
    auto subject = record.subject.value_or(0);
    if (main.holds(command.bytes, 8))
        record.bytes = main.get<uint64_t>(command.bytes) + (command.limit ? 1 : 0);
    else if (command.parameters != none && parameters.readable() && parameters.holds(memory_bytes(subject), 8))
        record.bytes = parameters.get<uint64_t>(memory_bytes(subject));
    const bool virtual_class = subject == 0x70 || subject == 0x50a0 || subject == 0x90f1;
    record.is_virtual =
        record.bytes && (command.addresses || (std::string(command.name) == "RM_ALLOC" && virtual_class));
}

void Prepared::expect(uint64_t calls) const
{
    if (!have_driver() || device_name == "pipe" || device_name == "null")
        return;
    stub_script script{};
    script.calls = static_cast<uint32_t>(calls);
    script.result = -static_cast<int32_t>(step.number("errno", 0));
    script.delay_us = static_cast<uint32_t>(delay_us());
    if (main.readable() && main.holds(command.status, 4) && step.option("status", "") != "none") {
        script.status = static_cast<uint32_t>(step.number("status", 0));
        script.status_at = main.address() + static_cast<uint64_t>(command.status);
    }
    if (wrapped || _IOC_TYPE(command.request) == 0) // the number does not contain the size of the structure
        script.touch_at = main.address(), script.touch_size = command.size;
    if (step.has("xid"))
        put(script, error_of(step, static_cast<uint32_t>(step.number("xid", 0))));
    send_script(fd, script);
}

CallRecord Prepared::once() const
{
    main.cool();
    parameters.cool();
    CallRecord after = record;
    after.error = ioctl(fd, record.request, wrapped ? wrapper.address() : main.address()) ? errno : 0;
    if (!after.error && main.readable() && main.holds(command.status, 4))
        after.status = main.get<uint32_t>(command.status);
    return after;
}

CallRecord Prepared::as_killed() const
{
    CallRecord dead = record;
    dead.killed = have_driver(); // without the stub, the call returns before it is killed
    dead.error = have_driver() ? EINTR : EBADF;
    return dead;
}

void make(const Step& step, const Prepared& prepared, uint64_t calls)
{
    prepared.expect(calls);
    for (uint64_t i = 0; i < calls && !stopping(); i++) {
        uint64_t start = now();
        CallRecord record = prepared.once();
        record_call(record, now() - start, have_driver() ? prepared.delay_us() * 1000 : 0);
        if (have_driver() && step.has("xid")) {
            Error error = error_of(step, static_cast<uint32_t>(step.number("xid", 0)));
            record_xid(error.number, error.pid, error.name, error.text);
        }
        pause_us(step.number("gap_us", 0));
    }
}

Command command_of(const Step& step)
{
    const Command* found = find_command(step.word(0));
    if (!found)
        workload::wrong(step, "no such command");
    return step.has("size") ? resized(*found, static_cast<unsigned>(step.number("size", 0))) : *found;
}

} // namespace

void call(const Step& step)
{
    Command command = command_of(step);
    make(step, Prepared(step, command, command.device), workload::to_number(step, step.word(1, "1")));
}

void number(const Step& step)
{
    auto request = static_cast<uint32_t>(step.number(1));
    auto size = static_cast<unsigned>(step.number("size", _IOC_TYPE(request) ? _IOC_SIZE(request) : 0));
    Command command{"", "", request, size};
    make(step, Prepared(step, command, step.word(0)), workload::to_number(step, step.word(2, "1")));
}

void killed(const Step& step)
{
    uint64_t ms = step.number(0);
    if (step.body.size() != 1 || step.body[0].name != "call")
        workload::wrong(step, "killed needs exactly one call");
    const Step& inner = step.body[0];
    Command command = command_of(inner);
    Prepared prepared(inner, command, command.device);
    pid_t child = fork();
    if (child == 0) {
        prepared.expect(1);
        prepared.once();
        pause(); // without a driver, the call has returned at once: wait for the kill
        _exit(0);
    }
    pause_us(ms * 1000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    record_killed(prepared.as_killed(), child);
}

void xid(const Step& step)
{
    auto number = static_cast<uint32_t>(step.number(0));
    Error error = error_of(step, number);
    if (!have_driver())
        workload::fail("xid needs the stub driver: load its kernel module first");
    stub_script script{};
    put(script, error);
    for (uint64_t i = 0; i < workload::to_number(step, step.word(1, "1")); i++) {
        send_script(device("nvidiactl"), script);
        record_xid(error.number, error.pid, error.name, error.text);
    }
}

} // namespace ioctls
