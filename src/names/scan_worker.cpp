// SPDX-License-Identifier: Apache-2.0
#include "names/scan_worker.hpp"

#include "names/registration_scan.hpp"
#include "reader/confinement.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

constexpr std::chrono::seconds longest(30);  // on the clock: the disk may be slow
constexpr uint64_t cpu_seconds = 5;          // far above what cuBLASLt takes, which is 1.3
constexpr uint64_t memory_bytes = 256 << 20; // more than we have ourselves
constexpr int file_fd = Child::first_fd;
constexpr int result_fd = file_fd + 1;

void write_all(std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t done = write(result_fd, bytes.data(), bytes.size());
        if (done <= 0)
            _exit(1);
        bytes.remove_prefix(static_cast<size_t>(done));
    }
}

void scan()
{
    confine({.capabilities = {},
             .calls = {},
             .memory_bytes = memory_bytes,
             .cpu_seconds = cpu_seconds,
             .output_bytes = encoded_max});
    write_all(encode(scan_registrations(Elf(Fd(file_fd)))));
}

} // namespace

ScanWorker::ScanWorker(const Fd& file)
    : result_(memfd_create("gpusnoop-scan", MFD_CLOEXEC)), begun_(std::chrono::steady_clock::now()),
      child_({file.get(), result_.get()}, scan)
{}

bool ScanWorker::ended()
{
    if (std::chrono::steady_clock::now() - begun_ > longest)
        child_.kill();
    return child_.ended();
}

std::optional<Registrations> ScanWorker::answer() const
{
    return child_.succeeded() ? registrations_in(result_) : std::nullopt;
}

} // namespace gpusnoop
