// SPDX-License-Identifier: Apache-2.0
#include "base/json_strings.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace gpusnoop {

namespace {

constexpr size_t max_depth = 64;

// Event handler for nlohmann's SAX parser, which stops when a handler returns false.
class Walk : public nlohmann::json_sax<nlohmann::json> {
public:
    Walk(const std::function<void(const JsonPath&, const std::string&)>& use, bool with_empty_objects)
        : use_(use), with_empty_objects_(with_empty_objects)
    {}

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

    bool start_object(std::size_t) override
    {
        empty_ = true;
        return enter(not_array);
    }
    bool key(string_t& text) override
    {
        empty_ = false;
        path_.back() = text;
        return true;
    }
    bool end_object() override
    {
        const bool was_empty = std::exchange(empty_, false);
        path_.pop_back();
        indices_.pop_back();
        if (was_empty && with_empty_objects_ && !path_.empty())
            use_(path_, {});
        return value();
    }
    bool start_array(std::size_t) override { return enter(0); }
    bool end_array() override
    {
        path_.pop_back();
        indices_.pop_back();
        return value();
    }

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
    bool value()
    {
        if (!indices_.empty() && indices_.back() != not_array)
            path_.back() = std::to_string(++indices_.back());
        return true;
    }

    const std::function<void(const JsonPath&, const std::string&)>& use_;
    bool with_empty_objects_;
    bool empty_ = false; // the innermost object has no key yet
    JsonPath path_;
    std::vector<uint64_t> indices_; // for each level of the path, the index of the array element, or not_array
};

} // namespace

bool each_json_string(std::string_view text, const std::function<void(const JsonPath&, const std::string&)>& use)
{
    Walk walk(use, false);
    return nlohmann::json::sax_parse(text.begin(), text.end(), &walk);
}

bool each_json_string_and_empty_object(std::string_view text,
                                       const std::function<void(const JsonPath&, const std::string&)>& use)
{
    Walk walk(use, true);
    return nlohmann::json::sax_parse(text.begin(), text.end(), &walk);
}

} // namespace gpusnoop
