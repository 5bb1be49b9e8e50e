// SPDX-License-Identifier: Apache-2.0
// Interface of fuzz targets. target.cpp limits their time and memory.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// TARGET(NAME) {...} defines a function that is called once per input, with arbitrary bytes.
#define TARGET(NAME)                                                                                                   \
    static void fuzz_##NAME(std::string_view input);                                                                   \
    static const bool has_##NAME = gpusnoop::add_target(#NAME, fuzz_##NAME);                                           \
    static void fuzz_##NAME([[maybe_unused]] std::string_view input)

namespace gpusnoop {

bool add_target(const char* name, void (*fuzz)(std::string_view));

// Aborts with the invariant's text if it does not hold.
void expect(bool holds, const char* invariant);

// An unnamed file with this content, positioned at its start.
Fd file_with(std::string_view content);

// A temporary folder, removed by the destructor.
class Folder {
public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    const std::string& path() const { return path_; }
    void write(const std::string& name, std::string_view content) const; // creates parent folders

private:
    std::string path_;
};

// Splits an input into numbers and texts. After its end, numbers are 0 and texts are empty.
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
