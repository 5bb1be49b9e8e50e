// SPDX-License-Identifier: Apache-2.0
// Text and JSON output of arbitrary bytes from traced processes.
#include "rows/output.hpp"
#include "base/text.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <unistd.h>

using namespace gpusnoop;

namespace {

constexpr Column columns[] = {{"NAME", "name", Unit::text, 8},   {"NUMBER", "number", Unit::count, 8},
                              {"RATE", "rate", Unit::rate, 8},   {"BYTES", "bytes", Unit::bytes, 8},
                              {"SHAPE", "shape", Unit::dim3, 8}, {"ADDRESS", "address", Unit::hex, 8},
                              {"TIME", "at", Unit::time, 8},     {"TOOK", "took_ns", Unit::ns_as_us}};

bool is_valid(std::string_view text)
{
    for (size_t length = 0; !text.empty(); text.remove_prefix(length))
        if (length = first_code_point(text).length; length == 0)
            return false;
    return true;
}

bool steers(std::string_view text)
{
    for (; !text.empty(); text.remove_prefix(std::max<size_t>(first_code_point(text).length, 1)))
        if (const CodePoint c = first_code_point(text); c.length && steers_terminal(c.code) && c.code != '\n')
            return true;
    return false;
}

// The text that an output writes to stdout.
std::string written(std::unique_ptr<Output> output, const Row& row, const std::vector<std::string>& below)
{
    static const Fd file = [] {
        Fd made = file_with("");
        dup2(made.get(), STDOUT_FILENO);
        return made;
    }();
    expect(ftruncate(file.get(), 0) == 0 && lseek(file.get(), 0, SEEK_SET) == 0, "stdout is a file");
    output->start("fuzz", std::get<std::string>(row[0]), std::nullopt);
    output->attached(1, 1, std::get<std::string>(row[0]), below);
    output->begin_table(columns, 1'700'000'000'000'000'000, 1);
    output->row(columns, row, below);
    output->event(columns, row, below);
    Histogram histogram;
    histogram.add(1, 1);
    const std::pair<std::string_view, Cell> fields[] = {{"name", row[0]}};
    output->histogram(std::get<std::string>(row[0]), "usecs", histogram, fields, 0);
    output->end(1);
    output->flush();
    std::string text(static_cast<size_t>(lseek(file.get(), 0, SEEK_END)), '\0');
    expect(pread(file.get(), text.data(), text.size(), 0) == std::ssize(text), "stdout can be read");
    return text;
}

void check_json(const std::string& text, const std::string& name, const std::vector<std::string>& below)
{
    unsigned lines = 0, rows = 0;
    for (size_t at = 0, end = 0; at < text.size(); at = end + 1, lines++) {
        end = text.find('\n', at);
        const auto object = nlohmann::json::parse(text.begin() + at, text.begin() + end); // throws if it is not JSON
        if (object["type"] != "row")
            continue;
        rows++;
        expect(!is_valid(name) || object["name"] == name, "valid names do not change");
        expect(object.value("frames", std::vector<std::string>()).size() == below.size(), "no frames are lost");
    }
    expect(lines == 6 && rows == 1, "each record is one line");
}

} // namespace

void fuzz(std::string_view input)
{
    Parts parts(input);
    const auto numbers = std::array{parts.number<uint64_t>(), parts.number<uint64_t>()};
    const auto rate = parts.number<double>();
    const std::string name(parts.text());
    std::vector<std::string> below;
    while (!parts.over())
        below.emplace_back(parts.text());
    const Row row{name,
                  numbers[0],
                  rate,
                  numbers[1],
                  Dim3{1, 2, static_cast<uint32_t>(numbers[0])},
                  numbers[1],
                  numbers[0] % (uint64_t{1} << 62),
                  numbers[1]};
    const std::string json = written(make_json_output(), row, below);
    expect(!steers(json) && is_valid(json), "JSON contains no terminal control codes");
    check_json(json, name, below);
    const std::string text = written(make_text_output(true), row, below);
    expect(!steers(text) && is_valid(text), "text contains no terminal control codes");
    std::string cut;
    const size_t width = numbers[0] % 64;
    expect(append_printable(cut, name, width) <= width, "a name fits in its column");
}
