// SPDX-License-Identifier: Apache-2.0
#include "output/recording_file.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/write_all.hpp"

#include <cerrno>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {
namespace {

constexpr std::string_view begin_of_line = R"({"type":)";
constexpr std::string_view begin_of_table = R"({"type":"table",)";
constexpr std::string_view older = ".1"; // suffix
constexpr mode_t mode = 0644;

} // namespace

RecordingFile::RecordingFile(std::string path, uint64_t max)
    : packer_(packer_for(path)),
      path_(std::move(path), packer_ ? fmt::format("{} recording", packer_->name()) : "recording",
            packer_ ? packer_->magic() : begin_of_line),
      file_max_(max / 2)
{
    path_.open_existing(older); // that is to be replaced later: refused now, not after days
    file_ = path_.open(mode);
    end_last_line();
}

RecordingFile::~RecordingFile()
{
    finish();
}

void RecordingFile::finish()
{
    flush();
    if (!std::exchange(finished_, true))
        end_packed();
}

// The last line of a run that was killed may have no end.
void RecordingFile::end_last_line()
{
    struct stat st {};
    char last = '\n';
    if (fstat(file_.get(), &st) != 0)
        throw Error(
            fmt::format("the recording '{}' cannot be written: {}", printable(path_.path()), errno_text(errno)));
    written_ = static_cast<uint64_t>(st.st_size);
    if (!packer_ && written_ && pread(file_.get(), &last, 1, st.st_size - 1) == 1 && last != '\n' &&
        !write_all(file_.get(), "\n"))
        throw Error(
            fmt::format("the recording '{}' cannot be written: {}", printable(path_.path()), errno_text(errno)));
}

void RecordingFile::fail(int error)
{
    failure_ = fmt::format("the recording '{}' is not whole: it cannot be written: {}", printable(path_.path()),
                           errno_text(error));
    warn(*failure_);
}

bool RecordingFile::write(std::string_view lines)
{
    const std::string packed = packer_ ? packer_->packed(lines) : "";
    const std::string_view bytes = packer_ ? packed : lines;
    if (!write_all(file_.get(), bytes)) {
        fail(errno);
        return false;
    }
    written_ += bytes.size();
    return true;
}

void RecordingFile::end_packed()
{
    if (packer_ && !failure_ && !first_line_.empty() && !write_all(file_.get(), packer_->end()))
        fail(errno);
}

void RecordingFile::rotate()
{
    end_packed();
    try {
        if (path_.open_existing(older) && !std::exchange(dropped_, true))
            warn(fmt::format("the recording '{}' has reached its size (--record-max): what is oldest in it goes",
                             printable(path_.path())));
        path_.rename(file_, older);
        file_ = path_.create(mode);
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
