// SPDX-License-Identifier: Apache-2.0
// A target is one file in targets/ that defines fuzz(). It has bounds of time and memory without its doing
// (target.cpp).
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// Called with any bytes, again and again.
void fuzz(std::string_view input);

namespace gpusnoop {

// What is true whatever the input is.
void expect(bool holds, const char* what);

// An unnamed file, at its beginning.
Fd file_with(std::string_view content);

// A folder that is empty at first and goes with this.
class Folder {
public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    const std::string& path() const { return path_; }
    void write(const std::string& name, std::string_view content) const; // making the folders it is in

private:
    std::string path_;
};

// An input of several parts: zeros and empty texts where it is over.
class Parts {
public:
    explicit Parts(std::string_view input) : rest_(input) {}

    bool over() const { return rest_.empty(); }

    template<class T>
    T number()
    {
        T value{};
        const std::string_view bytes = text(sizeof(T));
        memcpy(&value, bytes.data(), bytes.size());
        return value;
    }
    std::string_view text(size_t size)
    {
        const std::string_view taken = rest_.substr(0, size);
        rest_.remove_prefix(taken.size());
        return taken;
    }
    std::string_view text() { return text(number<uint8_t>()); }

private:
    std::string_view rest_;
};

} // namespace gpusnoop
