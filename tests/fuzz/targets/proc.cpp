// SPDX-License-Identifier: Apache-2.0
// What processes and helpers say about themselves.
#include "attach/search_messages.hpp"
#include "code/stack_messages.hpp"
#include "names/name_messages.hpp"
#include "proc/mapping_watch.hpp"
#include "proc/process.hpp"
#include "tests/fuzz/target.hpp"
#include "who/containers.hpp"

#include <algorithm>
#include <climits>
#include <fmt/format.h>
#include <sys/sysmacros.h>

using namespace gpusnoop;

// /proc/PID/environ. A process can make it show any part of its memory.
TARGET(environment)
{
    const std::vector<std::string> folders = library_path(input);
    expect(folders.size() <= 32, "at most 32 folders");
    for (const std::string& folder : folders) {
        expect(folder.starts_with('/') && folder.size() < PATH_MAX, "folders are absolute");
        expect(folder.find_first_of(std::string_view("\0:", 2)) == std::string::npos, "folders contain no separator");
        expect(input.find(folder) != std::string_view::npos, "the input contains each folder");
    }
}

namespace {

// The line that the kernel would write.
std::string line_of(const Mapping& m)
{
    std::string line = fmt::format("{:x}-{:x} r-{}p {:08x} {:02x}:{:02x} {} ", m.start, m.end, m.executable ? 'x' : '-',
                                   m.file_offset, major(m.device), minor(m.device), m.inode);
    for (const char c : m.path)
        line += c == '\n' ? "\\012" : std::string(1, c);
    return line + (m.deleted ? " (deleted)\n" : "\n");
}

bool same(const Mapping& a, const Mapping& b)
{
    return line_of(a) == line_of(b);
}

} // namespace

// /proc/PID/maps. A process chooses the paths in it.
TARGET(maps)
{
    const std::vector<Mapping> all = parse_maps(input);
    expect(std::ssize(all) <= std::ranges::count(input, '\n') + 1, "a line yields at most one mapping");
    std::string written;
    for (const Mapping& m : all) {
        expect(m.end > m.start, "mappings are not empty");
        expect(m.path.empty() ? !m.deleted : m.path.starts_with('/'), "paths are absolute");
        written += line_of(m);
    }
    expect(std::ranges::equal(parse_maps(written), all, same), "the mappings survive a round trip");
}

// Perf records of any size. Traced processes choose the paths in them.
TARGET(mapping_records)
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

namespace {

template<class Answer>
void try_as(std::string_view input)
{
    const auto answer = read_message<Answer>(input);
    if (!answer)
        return;
    const std::string bytes = message_of(*answer);
    const auto again = read_message<Answer>(bytes);
    expect(again && message_of(*again) == bytes, "the message survives a round trip");
    expect(bytes.size() <= input.size(), "the message does not grow");
    expect(!read_message<Answer>(bytes + '\0') &&
               !read_message<Answer>(std::string_view(bytes).substr(0, bytes.size() - 1)),
           "messages of another length are rejected");
}

} // namespace

// Messages from helpers. A malicious file may have taken over the helper that sends them.
TARGET(helper_answers)
{
    try_as<SearchAnswer>(input);
    try_as<NameAnswer>(input);
    try_as<StackAnswer>(input);
    try_as<ContainerAnswer>(input);
    try_as<PendingCallsAnswer>(input);
}
