// SPDX-License-Identifier: Apache-2.0
#include "output/record.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gpusnoop {

namespace {

constexpr size_t values_max = 512, depth_max = 16, texts_max = 1024;

// Parses without building a tree, so that large nested values need no memory.
class RecordParser : public nlohmann::json_sax<nlohmann::json> {
public:
    explicit RecordParser(std::vector<std::pair<std::string, Record::Value>>& to) : to_(to) {}

    bool null() override { return depth_ > 0; }
    bool boolean(bool value) override { return number(value); }
    bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
    bool number_unsigned(number_unsigned_t value) override { return number(static_cast<double>(value)); }
    bool number_float(number_float_t value, const string_t&) override { return number(value); }
    bool string(string_t& text) override
    {
        if (depth_ == 1)
            to_.emplace_back(std::move(key_), std::move(text));
        else if (depth_ == 2 && in_list_)
            add(std::move(text));
        return depth_ > 0 && to_.size() <= values_max;
    }
    bool binary(binary_t&) override { return false; }
    bool start_object(std::size_t) override { return enter(false); }
    bool end_object() override { return leave(); }
    bool start_array(std::size_t) override { return enter(true); }
    bool end_array() override { return leave(); }
    bool key(string_t& key) override
    {
        if (depth_ == 1)
            key_ = std::move(key);
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

private:
    // Adds a text to the current list. A new list is a list of numbers; its first text turns it into a list of texts.
    void add(std::string text)
    {
        Record::Value& list = to_.back().second;
        if (const auto* numbers = std::get_if<Record::Numbers>(&list); numbers && numbers->empty())
            list = Record::Texts();
        if (auto* texts = std::get_if<Record::Texts>(&list); texts && texts->size() < texts_max)
            texts->push_back(std::move(text));
    }

    bool number(double value)
    {
        if (!std::isfinite(value))
            return false;
        constexpr size_t max_numbers = 3;
        if (depth_ == 1)
            to_.emplace_back(std::move(key_), value);
        else if (depth_ == 2 && in_list_ && !to_.empty())
            if (auto* numbers = std::get_if<Record::Numbers>(&to_.back().second);
                numbers && numbers->size() < max_numbers)
                numbers->push_back(value);
        return depth_ > 0 && to_.size() <= values_max;
    }

    bool enter(bool is_array)
    {
        if (depth_ == 0 && is_array)
            return false; // the record must be an object
        in_list_ = is_array && depth_ == 1;
        if (in_list_)
            to_.emplace_back(std::move(key_), Record::Numbers());
        return ++depth_ <= depth_max && to_.size() <= values_max;
    }

    bool leave()
    {
        depth_--;
        in_list_ = false;
        return true;
    }

    std::vector<std::pair<std::string, Record::Value>>& to_;
    std::string key_;
    size_t depth_ = 0;
    bool in_list_ = false;
};

} // namespace

std::optional<Record> Record::parse(std::string_view line)
{
    Record record;
    RecordParser reader(record.values_);
    if (!nlohmann::json::sax_parse(line, &reader))
        return std::nullopt;
    return record;
}

const Record::Value* Record::value(std::string_view key) const
{
    for (const auto& [name, value] : values_)
        if (name == key)
            return &value;
    return nullptr;
}

template<class T>
const T* Record::find(std::string_view key) const
{
    return std::get_if<T>(value(key)); // get_if() accepts a null pointer
}

std::string_view Record::text(std::string_view key) const
{
    const auto* found = find<std::string>(key);
    return found ? std::string_view(*found) : std::string_view();
}

std::optional<double> Record::number(std::string_view key) const
{
    const auto* found = find<double>(key);
    return found ? std::optional(*found) : std::nullopt;
}

const Record::Texts* Record::texts(std::string_view key) const
{
    return find<Texts>(key);
}

std::optional<double> Record::product(std::string_view key) const
{
    const auto* found = find<Numbers>(key);
    return found && found->size() == 3 ? std::optional((*found)[0] * (*found)[1] * (*found)[2]) : std::nullopt;
}

uint64_t lost_in(const Record& record)
{
    uint64_t lost = 0;
    if (record.type() == "lost")
        for (const auto& [key, value] : record.all())
            if (const auto* count = std::get_if<double>(&value);
                // every line has these two fields, which are not losses
                count && *count > 0 && key != "schema" && key != "monotonic_ns")
                lost += static_cast<uint64_t>(std::min(*count, 1e15));
    return lost;
}

std::optional<double> wall_ns_of(std::string_view time)
{
    if (time.size() != sizeof("2026-01-01T10:00:00.000000+00:00") - 1)
        return std::nullopt;
    bool whole = true;
    auto digits = [&](size_t at, size_t length) {
        const int value = parse_number<int>(time.substr(at, length)).value_or(-1);
        whole &= value >= 0;
        return value;
    };
    tm utc{};
    utc.tm_year = digits(0, 4) - 1900;
    utc.tm_mon = digits(5, 2) - 1;
    utc.tm_mday = digits(8, 2);
    utc.tm_hour = digits(11, 2);
    utc.tm_min = digits(14, 2);
    utc.tm_sec = digits(17, 2);
    const double micro = digits(20, 6), offset = digits(27, 2) * 3600 + digits(30, 2) * 60;
    if (!whole || (time[26] != '+' && time[26] != '-'))
        return std::nullopt;
    const double seconds = static_cast<double>(timegm(&utc)) - (time[26] == '-' ? -offset : offset);
    return seconds * 1e9 + micro * 1e3;
}

RecordedLines::RecordedLines(std::string path) : path_(std::move(path))
{
    file_ = Fd(::open(path_.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC));
    if (!file_)
        throw Error(fmt::format("'{}' cannot be read: {}", printable(path_), errno_text(errno)));
}

// Reads the next part of the file. Returns false at the end of the file.
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
        decompressor_ = decompressor_for(bytes);
    (decompressor_ ? raw_ : text_).append(bytes);
    return got > 0;
}

// Decompresses more data. After a member that is damaged, or incomplete because its run was killed, continues with the
// next member.
void RecordedLines::unpack()
{
    std::string_view packed = raw_;
    const Decompressor::State state = decompressor_->unpack(packed, text_);
    raw_.erase(0, raw_.size() - packed.size());
    if (state == Decompressor::State::damaged) {
        damage_.bytes += decompressor_->damaged().bytes;
        raw_.insert(0, decompressor_->damaged().reread);
        text_.resize(text_.rfind('\n') + 1); // drop the incomplete last line
        skipping_ = false;
    }
    in_member_ = state == Decompressor::State::more;
    if (!in_member_)
        decompressor_->restart();
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
