// SPDX-License-Identifier: Apache-2.0
#include "names/scanner.hpp"

#include "base/error.hpp"
#include "names/registration_scan.hpp"

#include <chrono>
#include <string>
#include <sys/syscall.h>
#include <utility>

namespace gpusnoop {
namespace {

constexpr std::chrono::seconds hang_timeout(30); // the disk may be slow
constexpr uint64_t cpu_seconds = 5;              // far above what cuBLASLt takes, which is 1.3
constexpr uint64_t memory_bytes = 256 << 20;     // more than the tool itself has
constexpr uint32_t calls[] = {SYS_recvmsg, SYS_sendmsg};

// An answer without bytes: the file cannot be scanned.
void serve(Helper::Task& task)
{
    while (auto message = task.connection.receive()) {
        std::string found;
        try {
            found = encode(scan_registrations(Elf(std::move(message->file))));
        } catch (const Error&) { // NOLINT(bugprone-empty-catch)
        }
        if (!send_in_parts(task.connection, found))
            return;
    }
}

} // namespace

Scanner::Scanner()
    : parts_(encoded_max),
      reader_({.sandbox =
                   Sandbox{.calls = calls, .memory_bytes = memory_bytes, .cpu_seconds = cpu_seconds, .output_bytes = 0},
               .serve = serve,
               .apply_part =
                   [this](const Reader::Part& part) {
                       const Reader::Reply reply = parts_.add(part.message.bytes);
                       if (reply == Reader::Reply::complete) {
                           answer_ = decode_registrations(parts_.extract());
                           is_busy_ = false;
                       }
                       return reply;
                   },
               .restarted =
                   [this] {
                       parts_.extract();
                       is_busy_ = false;
                   },
               .consequence = "kernels of its files have no names",
               .hang_timeout = hang_timeout,
               .limits_shares = false})
{}

bool Scanner::begin(pid_t about, const Fd& file)
{
    reader_.retire_idle(); // the time of the CPU is for one file
    answer_.reset();
    is_busy_ = reader_.post(about, "scan", file.get());
    return is_busy_;
}

bool Scanner::ended()
{
    if (is_busy_)
        reader_.poll();
    if (!is_busy_)
        reader_.retire_idle();
    return !is_busy_;
}

} // namespace gpusnoop
