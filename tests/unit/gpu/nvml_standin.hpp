// SPDX-License-Identifier: Apache-2.0
// Access to the stand-in for NVML, which reads its answers from a file (tests/standin/README.md).
#pragma once

#include "gpu/nvml.hpp"

#include "tests/unit/base/folder.hpp"

#include <fmt/format.h>
#include <memory>
#include <vector>

namespace gpusnoop::nvml_standin {

// The program is in build/unit, the stand-in in build/standin.
inline std::string standin()
{
    return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() /
           "standin/nvml/libnvidia-ml.so.1";
}

// Sets the answers of the stand-in, and makes copies of the stand-in library.
class Answers {
public:
    explicit Answers(const std::string& text)
    {
        set(text);
        setenv("STANDIN_NVML", folder.file("answers").c_str(), 1);
    }
    Answers(const Answers&) = delete;
    Answers& operator=(const Answers&) = delete;
    ~Answers() { unsetenv("STANDIN_NVML"); }

    void set(const std::string& text) const { folder.file("answers", text); }

    // Makes a copy of the library without the symbols that contain one of these texts, and returns its path.
    std::string without(const std::vector<std::string>& symbols) const
    {
        std::string bytes = contents(standin());
        for (const std::string& symbol : symbols)
            for (size_t at = 0; (at = bytes.find(symbol, at)) != std::string::npos; at++)
                bytes[at + symbol.size() - 1] = '?';
        return folder.file("copy.so", bytes);
    }

    Folder folder;
};

// "-" if the value is unknown.
template<class Figure>
std::string text(const std::optional<Figure>& figure)
{
    return figure ? fmt::to_string(*figure) : "-";
}

inline std::unique_ptr<gpusnoop::Nvml> open(const std::string& path)
{
    std::string why;
    auto nvml = gpusnoop::Nvml::open(why, {.library = path, .folders = {}, .root = {}});
    INFO(why);
    REQUIRE(nvml);
    return nvml;
}

} // namespace gpusnoop::nvml_standin
