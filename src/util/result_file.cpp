// SPDX-License-Identifier: Apache-2.0
#include "util/result_file.hpp"

#include "util/error.hpp"
#include "util/text.hpp"
#include "util/write_all.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <utility>

namespace gpusnoop {

// We are root in somebody's folder: no link is followed, and nothing but a file is opened.
ResultFile::ResultFile(std::string path, std::string_view begin, std::string_view what)
    : path_(std::move(path)), what_(what),
      file_(open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644))
{
    const auto refused = [&](std::string_view why) {
        return Error(fmt::format("the {} '{}' cannot be written: {}", what_, printable(path_), why));
    };
    if (!file_)
        throw refused(errno == ELOOP ? "it is a link" : errno_text(errno));
    struct stat st {};
    if (fstat(file_.get(), &st) || !S_ISREG(st.st_mode))
        throw refused("it is no regular file");
    // Nobody loses another file for having mistaken its name.
    std::string first(begin.size(), '\0');
    const bool ours = pread(file_.get(), first.data(), first.size(), 0) == static_cast<ssize_t>(begin.size());
    if (st.st_size && !(ours && first == begin))
        throw Error(fmt::format("'{}' is there, and is no {} of gpusnoop's", printable(path_), what_),
                    "name another file");
}

void ResultFile::write(std::string_view bytes)
{
    if ((!std::exchange(begun_, true) && ftruncate(file_.get(), 0)) || !write_all(file_.get(), bytes))
        throw Error(fmt::format("the {} '{}' is not whole: it cannot be written: {}", what_, printable(path_),
                                errno_text(errno)));
}

} // namespace gpusnoop
