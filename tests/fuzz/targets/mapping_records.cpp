// SPDX-License-Identifier: Apache-2.0
// Perf records of any size. Traced processes choose the paths in them.
#include "proc/mapping_watch.hpp"
#include "tests/fuzz/target.hpp"

#include <sys/sysmacros.h>

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    unsigned reported = 0;
    const MappingWatch::Handlers handlers{
        .mapped =
            [&](pid_t, std::string_view path, uint64_t device, uint64_t inode) {
                reported++;
                expect(inode != 0 && makedev(major(device), minor(device)) == device, "device and inode are valid");
                expect(path.find('\0') == std::string_view::npos, "a path contains no NUL");
                expect(path.empty() || (path.data() >= input.data() && path.size() < input.size()),
                       "a path is within its record");
            },
        .forked = [&](pid_t pid, pid_t parent) { reported++, expect(pid != parent, "threads are not reported"); },
        .exited = [&](pid_t, pid_t) { reported++; },
        .on_exec = [&](pid_t, uint64_t) { reported++; },
        .named =
            [&](pid_t, std::string_view name, bool) {
                expect(name.find('\0') == std::string_view::npos, "a name contains no NUL");
                expect(name.empty() || (name.data() >= input.data() && name.size() < input.size()),
                       "a name is within its record");
            },
        .lost = [&] { reported++; }};
    const std::string exact(input);
    input = exact;
    MappingWatch::dispatch({reinterpret_cast<const uint8_t*>(exact.data()), exact.size()}, handlers);
    expect(reported <= 1, "a record is reported at most once");
}
