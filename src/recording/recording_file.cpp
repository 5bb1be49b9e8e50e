// SPDX-License-Identifier: Apache-2.0
#include "recording/recording_file.hpp"

#include "util/error.hpp"
#include "util/text.hpp"
#include "util/write_all.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace gpusnoop {
namespace {

constexpr std::string_view begin_of_line = R"({"type":)";
constexpr std::string_view begin_of_table = R"({"type":"table",)";

} // namespace

RecordingFile::RecordingFile(std::string path, uint64_t max) : path_(std::move(path)), file_max_(max / 2)
{
    packer_ = packer_for(path_);
    open(O_CREAT);
    check_what_is_there();
}

RecordingFile::~RecordingFile()
{
    flush();
    finish();
}

// We are root in somebody's folder: no link is followed, and nothing but a file is opened.
void RecordingFile::open(int flags)
{
    file_ = Fd(::open(path_.c_str(), O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags, 0644));
    if (!file_)
        throw Error(fmt::format("the recording '{}' cannot be written: {}", printable(path_),
                                errno == ELOOP ? "it is a link" : errno_text(errno)));
}

// Nobody loses another file for having mistaken its name.
void RecordingFile::check_what_is_there()
{
    struct stat st {};
    if (fstat(file_.get(), &st) || !S_ISREG(st.st_mode))
        throw Error(fmt::format("the recording '{}' cannot be written: it is no regular file", printable(path_)));
    written_ = static_cast<uint64_t>(st.st_size);
    if (!written_)
        return;
    char first[16], last = 0;
    const ssize_t got = pread(file_.get(), first, sizeof(first), 0);
    if (!std::string_view(first, got > 0 ? static_cast<size_t>(got) : 0)
             .starts_with(packer_ ? packer_->magic() : begin_of_line))
        throw Error(fmt::format("'{}' is there, and is no recording {}", printable(path_),
                                packer_ ? fmt::format("packed by {}", packer_->name()) : "in plain JSON"),
                    "name another file (--record)");
    // The last line of a run that was killed may have no end.
    if (!packer_ && pread(file_.get(), &last, 1, st.st_size - 1) == 1 && last != '\n' && !write_all(file_.get(), "\n"))
        throw Error(fmt::format("the recording '{}' cannot be written: {}", printable(path_), errno_text(errno)));
}

void RecordingFile::fail(std::string_view what, int error)
{
    failure_ =
        fmt::format("the recording '{}' is not whole: it cannot be {}: {}", printable(path_), what, errno_text(error));
    warn(*failure_);
}

bool RecordingFile::write(std::string_view lines)
{
    const std::string packed = packer_ ? packer_->packed(lines) : "";
    const std::string_view bytes = packer_ ? packed : lines;
    if (!write_all(file_.get(), bytes)) {
        fail("written", errno);
        return false;
    }
    written_ += bytes.size();
    return true;
}

void RecordingFile::finish()
{
    if (packer_ && !failure_ && !first_line_.empty() && !write_all(file_.get(), packer_->end()))
        fail("written", errno);
}

void RecordingFile::rotate()
{
    finish();
    const std::string older = path_ + ".1";
    struct stat st {};
    if (lstat(older.c_str(), &st) == 0 && !std::exchange(dropped_, true))
        warn(fmt::format("the recording '{}' has reached its size (--record-max): what is oldest in it goes",
                         printable(path_)));
    if (rename(path_.c_str(), older.c_str()))
        return fail("renamed", errno);
    try {
        open(O_CREAT | O_EXCL);
    } catch (const Error& error) {
        failure_ = error.what();
        warn(*failure_);
        return;
    }
    written_ = 0;
    write(first_line_ + table_line_);
}

// Of the last line that says so.
void RecordingFile::note_table()
{
    const size_t at = text.rfind(begin_of_table);
    if (at != text.npos && (at == 0 || text[at - 1] == '\n'))
        table_line_ = text.substr(at, text.find('\n', at) + 1 - at);
}

void RecordingFile::flush()
{
    if (first_line_.empty())
        first_line_ = text.substr(0, text.find('\n') + 1);
    if (!failure_ && !text.empty() && written_ > first_line_.size() && written_ + text.size() > file_max_)
        rotate();
    if (!failure_ && !text.empty())
        write(text);
    note_table();
    text.clear();
}

} // namespace gpusnoop
