// SPDX-License-Identifier: Apache-2.0
// Serialization of plain structures for messages between processes. The receiver validates every message, because a
// malicious file may have taken over the sender.
//
// A template next to each structure lists its fields, for writing and for reading:
//     void fields(auto& each, same_as_const<Thing> auto& thing) { each(thing.name, thing.lines); }
// A field is a number, a string, a structure, or an optional, array or vector of these.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusnoop {

template<class T, class Of>
concept same_as_const = std::same_as<std::remove_const_t<T>, Of>;

class MessageWriter {
public:
    void operator()(const auto&... values) { (put(values), ...); }
    std::string bytes;

private:
    template<class T>
    void put(const T& value)
    {
        if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
            bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
        else
            fields(*this, value);
    }
    void put(const std::string& text)
    {
        put(text.size());
        bytes += text;
    }
    template<class T>
    void put(const std::optional<T>& value)
    {
        put(value.has_value());
        if (value)
            put(*value);
    }
    template<class T, size_t n>
    void put(const std::array<T, n>& all)
    {
        for (const T& one : all)
            put(one);
    }
    template<class T>
    void put(const std::vector<T>& all)
    {
        put(all.size());
        for (const T& one : all)
            put(one);
    }
};

class MessageReader {
public:
    explicit MessageReader(std::string_view bytes) : rest_(bytes) {}
    void operator()(auto&... values) { (get(values), ...); }
    // True if the message had all fields and no more bytes.
    bool is_complete() const { return good_ && rest_.empty(); }

private:
    template<class T>
    void get(T& value)
    {
        if constexpr (std::is_same_v<T, bool>) { // copying a byte other than 0 or 1 into a bool is undefined behaviour
            uint8_t byte = 0;
            get(byte);
            value = byte != 0;
        } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
            good_ &= rest_.size() >= sizeof(value);
            if (!good_)
                return;
            std::memcpy(&value, rest_.data(), sizeof(value));
            rest_.remove_prefix(sizeof(value));
        } else {
            fields(*this, value);
        }
    }
    void get(std::string& text)
    {
        size_t size = 0;
        get(size);
        good_ &= size <= rest_.size();
        if (!good_)
            return;
        text = rest_.substr(0, size);
        rest_.remove_prefix(size);
    }
    template<class T>
    void get(std::optional<T>& value)
    {
        bool has_value = false;
        get(has_value);
        T inner{};
        if (has_value)
            get(inner);
        value = has_value ? std::optional(std::move(inner)) : std::nullopt;
    }
    template<class T, size_t n>
    void get(std::array<T, n>& all)
    {
        for (T& one : all)
            get(one);
    }
    template<class T>
    void get(std::vector<T>& all)
    {
        size_t size = 0;
        get(size);
        for (size_t i = 0; i < size && good_; i++)
            get(all.emplace_back());
    }

    std::string_view rest_;
    bool good_ = true;
};

template<class T>
std::string message_of(const T& value)
{
    MessageWriter writer;
    writer(value);
    return std::move(writer.bytes);
}

// Returns nullopt if the bytes are not a valid T.
template<class T>
std::optional<T> read_message(std::string_view bytes)
{
    T value{};
    MessageReader reader(bytes);
    reader(value);
    return reader.is_complete() ? std::optional(std::move(value)) : std::nullopt;
}

} // namespace gpusnoop
