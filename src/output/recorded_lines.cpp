// SPDX-License-Identifier: Apache-2.0
#include "output/recorded_lines.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>

namespace gpusnoop {

RecordedLines::RecordedLines(std::string path) : path_(std::move(path))
{
    file_ = Fd(::open(path_.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC));
    if (!file_)
        throw Error(fmt::format("'{}' cannot be read: {}", printable(path_), errno_text(errno)));
}

// False at the end of the file.
bool RecordedLines::read_more()
{
    char part[64 << 10];
    ssize_t got = 0;
    while ((got = ::read(file_.get(), part, sizeof(part))) < 0 && errno == EINTR)
        ;
    if (got < 0)
        throw Error(fmt::format("'{}' cannot be read: {}", printable(path_), errno_text(errno)));
    const std::string_view bytes(part, static_cast<size_t>(got));
    if (std::exchange(first_, false))
        unpacker_ = unpacker_of(bytes);
    (unpacker_ ? raw_ : text_).append(bytes);
    return got > 0;
}

// Of a member that is damaged, or of a run that was killed, the rest is left out, up to the begin of the next one.
void RecordedLines::unpack()
{
    std::string_view packed = raw_;
    const Unpacker::State state = unpacker_->unpack(packed, text_);
    raw_.erase(0, raw_.size() - packed.size());
    if (state == Unpacker::State::damaged) {
        damage_.bytes += unpacker_->damaged().bytes;
        raw_.insert(0, unpacker_->damaged().again);
        text_.resize(text_.rfind('\n') + 1); // half a line is none
        skipping_ = false;
    }
    in_member_ = state == Unpacker::State::goes_on;
    if (!in_member_)
        unpacker_->restart();
}

std::optional<std::string_view> RecordedLines::next()
{
    text_.erase(0, begin_);
    begin_ = 0;
    for (size_t from = 0;;) {
        const size_t end = text_.find('\n', from);
        if (end != text_.npos) {
            const bool is_rest = std::exchange(skipping_, false);
            begin_ = end + 1;
            if (!is_rest)
                return std::string_view(text_).substr(0, end);
            text_.erase(0, begin_);
            from = begin_ = 0;
            continue;
        }
        from = text_.size();
        if (text_.size() > line_max) {
            damage_.long_lines += !std::exchange(skipping_, true);
            text_.clear();
            from = 0;
        }
        if (!raw_.empty()) {
            const size_t before = raw_.size(), text_before = text_.size();
            unpack();
            from = std::min(from, text_.size());
            if (raw_.size() != before || text_.size() != text_before)
                continue;
        }
        if (!ended_ && read_more())
            continue;
        ended_ = true;
        damage_.cut_off = !text_.empty() || !raw_.empty() || in_member_;
        text_.clear();
        return std::nullopt;
    }
}

} // namespace gpusnoop
