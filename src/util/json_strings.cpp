// SPDX-License-Identifier: Apache-2.0
#include "util/json_strings.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>

namespace gpusnoop {

namespace {

constexpr size_t max_depth = 64;

// Events of nlohmann's parser, which ends where one returns false. It keeps no more than a bit for each level.
class Walk : public nlohmann::json_sax<nlohmann::json> {
public:
    explicit Walk(const std::function<void(const JsonPath&, const std::string&)>& use) : use_(use) {}

    bool null() override { return value(); }
    bool boolean(bool) override { return value(); }
    bool number_integer(number_integer_t) override { return value(); }
    bool number_unsigned(number_unsigned_t) override { return value(); }
    bool number_float(number_float_t, const string_t&) override { return value(); }
    bool binary(binary_t&) override { return value(); }
    bool string(string_t& text) override
    {
        if (!path_.empty())
            use_(path_, text);
        return value();
    }

    bool start_object(std::size_t) override { return enter(not_array); }
    bool key(string_t& text) override
    {
        path_.back() = text;
        return true;
    }
    bool end_object() override { return leave(); }
    bool start_array(std::size_t) override { return enter(0); }
    bool end_array() override { return leave(); }

    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

private:
    static constexpr uint64_t not_array = UINT64_MAX;

    bool enter(uint64_t index)
    {
        if (path_.size() == max_depth)
            return false;
        path_.push_back(index == not_array ? std::string() : std::to_string(index));
        indices_.push_back(index);
        return true;
    }
    bool leave()
    {
        path_.pop_back();
        indices_.pop_back();
        return value();
    }
    bool value()
    {
        if (!indices_.empty() && indices_.back() != not_array)
            path_.back() = std::to_string(++indices_.back());
        return true;
    }

    const std::function<void(const JsonPath&, const std::string&)>& use_;
    JsonPath path_;
    std::vector<uint64_t> indices_; // of the element that comes next, for each level of the path
};

} // namespace

bool each_json_string(std::string_view text, const std::function<void(const JsonPath&, const std::string&)>& use)
{
    Walk walk(use);
    return nlohmann::json::sax_parse(text.begin(), text.end(), &walk);
}

} // namespace gpusnoop
