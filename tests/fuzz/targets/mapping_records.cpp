// SPDX-License-Identifier: Apache-2.0
// Records of perf events, of any size: paths in them are those of traced processes.
#include "proc/mapping_watch.hpp"
#include "tests/fuzz/target.hpp"

#include <sys/sysmacros.h>

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    unsigned told = 0;
    const MappingWatch::Handlers handlers{
        .mapped =
            [&](pid_t, std::string_view path, uint64_t device, uint64_t inode) {
                told++;
                expect(inode != 0 && makedev(major(device), minor(device)) == device, "a file has a number");
                expect(path.find('\0') == std::string_view::npos, "a path has an end");
                expect(path.empty() || (path.data() >= input.data() && path.size() < input.size()),
                       "a path is within its record");
            },
        .forked = [&](pid_t pid, pid_t parent) { told++, expect(pid != parent, "a thread is no process"); },
        .exited = [&](pid_t, pid_t) { told++; },
        .on_exec = [&](pid_t, uint64_t) { told++; },
        .named =
            [&](pid_t, std::string_view name, bool) {
                expect(name.find('\0') == std::string_view::npos, "a name has an end");
                expect(name.empty() || (name.data() >= input.data() && name.size() < input.size()),
                       "a name is within its record");
            },
        .lost = [&] { told++; }};
    const std::string exact(input);
    input = exact;
    MappingWatch::dispatch({reinterpret_cast<const uint8_t*>(exact.data()), exact.size()}, handlers);
    expect(told <= 1, "a record is told once");
}
