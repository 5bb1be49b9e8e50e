// SPDX-License-Identifier: Apache-2.0
#include "output/pprof.hpp"

#include "base/text.hpp"
#include "output/compression.hpp"
#include "output/flame_formats.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

namespace gpusnoop {

// Writes a gzip-compressed pprof profile (github.com/google/pprof, proto/profile.proto).

namespace {

// Field numbers of each message in profile.proto.
namespace profile {
constexpr uint32_t sample_type = 1, sample = 2, location = 4, function = 5, string_table = 6, time_nanos = 9,
                   duration_nanos = 10, period_type = 11, period = 12, comment = 13;
}
namespace value_type {
constexpr uint32_t type = 1, unit = 2;
}
namespace sample {
constexpr uint32_t location_id = 1, value = 2;
}
namespace location {
constexpr uint32_t id = 1, line = 4;
}
namespace line {
constexpr uint32_t function_id = 1;
}
namespace function {
constexpr uint32_t id = 1, name = 2, system_name = 3, filename = 4;
}

// The string table, whose first entry is empty.
class Texts {
public:
    uint64_t number(std::string_view text)
    {
        const auto [at, is_new] = numbers_.emplace(text, numbers_.size());
        if (is_new)
            all_.push_back(&at->first);
        return at->second;
    }
    void write(WireMessage& to) const
    {
        for (const std::string* text : all_)
            to.bytes(profile::string_table, *text);
    }

private:
    std::map<std::string, uint64_t, std::less<>> numbers_{{"", 0}};
    std::vector<const std::string*> all_{&numbers_.begin()->first};
};

// Splits "f(int) (lib.so)" into function and file.
void add_function(WireMessage& to, Texts& texts, uint64_t id, std::string_view frame)
{
    const size_t file = frame.ends_with(')') ? frame.rfind(" (") : std::string_view::npos;
    WireMessage one;
    one.number(function::id, id);
    const uint64_t name = texts.number(frame.substr(0, file));
    one.number(function::name, name);
    one.number(function::system_name, name);
    if (file != std::string_view::npos)
        one.number(function::filename, texts.number(frame.substr(file + 2, frame.size() - file - 3)));
    to.message(profile::function, one);
    WireMessage line, place;
    line.number(line::function_id, id);
    place.number(location::id, id);
    place.message(location::line, line);
    to.message(profile::location, place);
}

std::string_view unit_name(const Weight& weight)
{
    constexpr std::string_view names[] = {"count", "bytes", "nanoseconds"};
    return names[static_cast<size_t>(unit_of(weight))];
}

} // namespace

std::string pprof_flames(const Flames& flames)
{
    const StackTree& stacks = flames.stacks;
    WireMessage all;
    Texts texts;
    WireMessage kind;
    kind.number(value_type::type, texts.number(flames.weight.key));
    kind.number(value_type::unit, texts.number(unit_name(flames.weight)));
    all.message(profile::sample_type, kind);
    const auto nodes = stacks.nodes();
    for (uint32_t i = 1; i < nodes.size(); i++) {
        if (!nodes[i].own)
            continue;
        std::vector<uint64_t> locations;
        for (const uint32_t frame : stacks.stack_of(i))
            locations.push_back(nodes[frame].name);
        constexpr uint64_t max_value = std::numeric_limits<int64_t>::max(); // pprof's values are signed
        const uint64_t value = std::min(nodes[i].own, max_value);
        WireMessage one;
        one.numbers(sample::location_id, locations);
        one.numbers(sample::value, {&value, 1});
        all.message(profile::sample, one);
    }
    for (uint32_t name = 1; name < stacks.names(); name++)
        add_function(all, texts, name, stacks.name(name));
    all.number(profile::time_nanos, flames.wall_ns);
    all.number(profile::duration_nanos, flames.length_ns);
    all.message(profile::period_type, kind);
    all.number(profile::period, 1);
    all.number(profile::comment, texts.number(printable(flames.command_line)));
    if (!flames.missing.empty())
        all.number(profile::comment, texts.number(flames.missing));
    texts.write(all);
    const std::unique_ptr<Compressor> compressor = compressor_for(".gz");
    std::string packed = compressor->compress(all.text());
    return packed += compressor->end();
}

} // namespace gpusnoop
