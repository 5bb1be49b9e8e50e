// SPDX-License-Identifier: Apache-2.0
// What a program takes, and its --help. CLI11 does the work in command_line.cpp and shows in no header: it takes longer
// to compile than most files of a tool do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace gpusnoop {

// Names are those of CLI11, "-l,--least"; one that is taken is refused. type: what the help shows in a value's place.
// Values are written by parse().
class CommandLine {
public:
    using Take = std::function<void(const std::string& text)>; // throws UsageError
    template<class T>
    struct Range {
        T least, most;
    };

    // examples: the end of --help.
    CommandLine(std::string_view name, std::string_view summary, std::string_view examples);
    ~CommandLine();
    CommandLine(const CommandLine&) = delete;
    CommandLine& operator=(const CommandLine&) = delete;

    const std::string& name() const { return name_; }

    void flag(const std::string& names, const std::string& help, bool& given);
    void flag(const std::string& names, const std::string& help, int& times);

    void text(const std::string& names, const std::string& type, const std::string& help, std::string& value);
    void text(const std::string& names, const std::string& type, const std::string& help,
              std::optional<std::string>& value);
    // remark: stands behind the type in the help.
    void text(const std::string& names, const std::string& type, const std::string& help, const Take& take,
              const std::string& remark = {});

    // May be given several times: take gets one after the other, commas and all.
    void texts(const std::string& names, const std::string& type, const std::string& help, const Take& take);
    // Separated by commas.
    void list(const std::string& names, const std::string& type, const std::string& help,
              std::vector<std::string>& values);

    void number(const std::string& names, const std::string& type, const std::string& help, uint32_t& value,
                Range<int> range);
    // The option may stand without its number, and means usual then.
    void number_or_none(const std::string& names, const std::string& type, const std::string& help,
                        std::optional<uint32_t>& value, Range<int> range, const std::string& usual);

    // Not an option, but known by its place.
    void argument(const std::string& name, const std::string& type, const std::string& help, const Take& take,
                  const std::string& remark = {});

    // Throws UsageError, and Answer where that was all: --help or --version.
    void parse(int argc, char** argv);

private:
    std::string name_;
    std::unique_ptr<CLI::App> app_;
};

} // namespace gpusnoop
