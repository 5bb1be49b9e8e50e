// SPDX-License-Identifier: Apache-2.0
// /proc/PID/maps. A process chooses the paths in it.
#include "proc/process.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <sys/sysmacros.h>

using namespace gpusnoop;

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

void fuzz(std::string_view input)
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
