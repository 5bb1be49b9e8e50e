// SPDX-License-Identifier: Apache-2.0
// /proc/PID/environ. A process can make it show any part of its memory.
#include "proc/process.hpp"
#include "tests/fuzz/target.hpp"

#include <climits>

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    const std::vector<std::string> folders = library_path(input);
    expect(folders.size() <= 32, "at most 32 folders");
    for (const std::string& folder : folders) {
        expect(folder.starts_with('/') && folder.size() < PATH_MAX, "folders are absolute");
        expect(folder.find_first_of(std::string_view("\0:", 2)) == std::string::npos, "folders contain no separator");
        expect(input.find(folder) != std::string_view::npos, "the input contains each folder");
    }
}
