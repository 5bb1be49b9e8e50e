// SPDX-License-Identifier: Apache-2.0
#include "base/result_file.hpp"

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {

ResultFile::ResultFile(std::string path, std::string_view begin, std::string_view what)
    : path_(std::move(path), what, begin), what_(what), file_(path_.open(0644))
{}

void ResultFile::write(std::string_view bytes)
{
    if ((!std::exchange(begun_, true) && ftruncate(file_.get(), 0)) || !write_all(file_.get(), bytes))
        throw Error(fmt::format("the {} '{}' is not whole: it cannot be written: {}", what_, printable(path_.path()),
                                errno_text(errno)));
}

} // namespace gpusnoop
