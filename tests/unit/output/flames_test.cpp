// SPDX-License-Identifier: Apache-2.0
// Flame graphs: weights are summed correctly, and names are escaped in all formats.
#include "base/error.hpp"
#include "output/compression.hpp"
#include "output/flame_formats.hpp"
#include "output/flames_output.hpp"
#include "tests/unit/base/folder.hpp"
#include "tests/unit/output/captured.hpp"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sys/stat.h>

using namespace gpusnoop;
namespace fs = std::filesystem;

namespace {

constexpr Column columns[] = {{"PID", "pid"},
                              {"COMM", "comm", Unit::text},
                              {"POD", "", Unit::text, 40, false},
                              {"LAUNCHES", "launches", Unit::count},
                              {"TIME(s)", "total_ns", Unit::seconds},
                              {"KERNEL", "", Unit::text}};
const std::vector<std::string> frames = {"schedule+0x23 (kernel)", "0xffff (kernel)", "read+0xd (libc.so.6)",
                                         "f<a;b>(int)+0x1f (my prog)", "odd\n(x"};
const std::string hostile = "</title><script>alert(\"1\")</script>&']]>;--><g onload='x()'>\x1b[31m\xff";

StackTree tree_of(const std::vector<std::pair<std::vector<std::string>, uint64_t>>& stacks)
{
    StackTree tree;
    for (const auto& [stack, weight] : stacks)
        tree.add(stack, weight);
    return tree;
}

Flames flames_of(const StackTree& tree, std::string_view key = "launches")
{
    return {tree, *find_weight(key), "cudalaunch", "1.0", "cudalaunch -U <&>", captured::ten_o_clock, 5'000'000'000,
            ""};
}

std::string unpacked(std::string_view packed)
{
    const auto unpacker = decompressor_for(packed);
    REQUIRE(unpacker);
    std::string text;
    while (unpacker->unpack(packed, text) == Decompressor::State::more) {}
    return text;
}

// Decoded fields of a Protocol Buffers message: numbers and bytes.
struct Field {
    uint64_t number = 0;
    std::string bytes;
};
std::multimap<uint32_t, Field> fields_of(std::string_view message)
{
    auto varint = [&] {
        uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            REQUIRE(!message.empty());
            const auto byte = static_cast<unsigned char>(message[0]);
            message.remove_prefix(1);
            value |= uint64_t{byte & 0x7fU} << shift;
            if (!(byte & 0x80))
                return value;
        }
    };
    std::multimap<uint32_t, Field> fields;
    while (!message.empty()) {
        const uint64_t key = varint();
        Field field{varint(), {}};
        REQUIRE(((key & 7) == 0 || (key & 7) == 2));
        if ((key & 7) == 2) {
            REQUIRE(field.number <= message.size());
            field.bytes = message.substr(0, field.number);
            message.remove_prefix(field.number);
        }
        fields.emplace(key >> 3, field);
    }
    return fields;
}

std::string contents(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

Options folded()
{
    Options options;
    options.folded = true;
    return options;
}

} // namespace

TEST_CASE("a stack consists of owner, process, frames and operation", "[flames]")
{
    const std::vector<std::string> stack = flame_stack(
        columns, {uint64_t{12}, std::string("a"), std::string("ns/p"), Cell(), Cell(), std::string("k<1>")}, frames);
    CHECK(stack == std::vector<std::string>{"a-12", "odd\\x0A(x", "f<a;b>(int) (my prog)", "read (libc.so.6)",
                                            "0xffff_[k]", "schedule_[k]", "k<1>"});
    std::vector<Column> by_pod(std::begin(columns), std::end(columns));
    by_pod[2].in_text = true;
    CHECK(flame_stack(by_pod, {Cell(), Cell(), std::string("ns/p")}, {}) == std::vector<std::string>{"ns/p", "?"});
}

TEST_CASE("the weight of a callee also counts for its callers", "[flames]")
{
    const StackTree tree = tree_of({{{"a", "b", "c"}, 5}, {{"a", "b"}, 2}, {{"a", "d"}, 1}, {{"a", "b", "c"}, 4}});
    std::map<std::string, uint64_t> totals;
    for (size_t i = 0; i < tree.nodes().size(); i++)
        totals[std::string(tree.name(tree.nodes()[i]))] = tree.totals()[i];
    CHECK(totals == std::map<std::string, uint64_t>{{"", 12}, {"a", 12}, {"b", 11}, {"c", 9}, {"d", 1}});
    CHECK(folded_flames(flames_of(tree)) == "a;b 2\na;b;c 9\na;d 1\n");
}

TEST_CASE("weights that exceed the tree's limits count for their callers", "[flames]")
{
    StackTree tree({.frames = 4, .name_bytes = 100, .one_name = 5});
    tree.add(std::vector<std::string>{"a", "b", "\xc3\xa4\xc3\xa4\xc3\xa4"}, 1);
    tree.add(std::vector<std::string>{"a", "b", "d"}, 2);
    CHECK(tree.truncated() == 1);
    CHECK(folded_flames(flames_of(tree)) == "a;b 2\na;b;\xc3\xa4\xc3\xa4 1\n");
    CHECK(tree.totals()[0] == 3);
    StackTree names({.frames = 100, .name_bytes = 3, .one_name = 5});
    names.add(std::vector<std::string>{"aaa", "b"}, 1);
    CHECK(names.truncated() == 1);
    CHECK(names.totals()[0] == 1);
}

TEST_CASE("counts are summed over all tables, but levels are taken from the last table", "[flames]")
{
    const auto use = [](bool level) {
        return [level](Output& output) {
            Column held[] = {{"PID", "pid"}, {"COMM", "comm", Unit::text}, {"LIVE", "live_bytes", Unit::bytes}};
            held[2].is_level = level;
            output.start("gpualloc", "1.0", std::nullopt);
            for (const uint64_t bytes : {10, 30}) {
                output.begin_table(held, captured::ten_o_clock, 1);
                output.row(held, {uint64_t{1}, std::string("a"), AtLeast{bytes}}, frames);
                output.row(held, {uint64_t{2}, std::string("b"), Cell()}, frames);
            }
            output.end(5);
        };
    };
    const captured::Written flow = captured::written(make_folded_output(folded()), use(false));
    CHECK(flow.out == "a-1;odd\\x0A(x;f<a:b>(int) (my prog);read (libc.so.6);0xffff_[k];schedule_[k] 40\n");
    CHECK(flow.err.find("2 rows have no bytes held") != flow.err.npos);
    const captured::Written level = captured::written(make_folded_output(folded()), use(true));
    CHECK(level.out.ends_with(" 30\n"));
}

TEST_CASE("lines weigh one each, gaps weigh their length", "[flames]")
{
    const auto written = [](std::string_view key, const Options& options) {
        const Column line[] = {{"PID", "pid"}, {"X", key, Unit::count}};
        return captured::written(make_folded_output(options), [&](Output& output) {
            output.event(line, {uint64_t{1}, uint64_t{700}}, {});
            output.event(line, {uint64_t{1}, uint64_t{500}}, {});
            output.end(5);
        });
    };
    CHECK(written("latency_ns", folded()).out == "?-1 2\n");
    CHECK(written("gap_ns", folded()).out == "?-1 1200\n");
    Options asked = folded();
    asked.weight = "latency_ns";
    CHECK(written("latency_ns", asked).out == "?-1 1200\n");
    CHECK_THROWS_AS(written("gap_ns", asked), Error);
    asked.weight = "latency";
    CHECK_THROWS_AS(check_flame_options(asked), UsageError);
    asked.folded = false;
    asked.weight = "launches";
    CHECK_THROWS_AS(check_flame_options(asked), UsageError);
}

TEST_CASE("names are escaped in SVG", "[flames]")
{
    const std::vector<std::string> stack = flame_stack(
        columns, {uint64_t{1}, hostile, Cell(), uint64_t{1}, Cell(), hostile}, std::vector<std::string>{hostile});
    StackTree tree;
    tree.add(stack, 7);
    const std::string svg = svg_flames(flames_of(tree));
    CHECK(svg.starts_with(svg_begin));
    const auto count = [&](std::string_view what) {
        size_t found = 0;
        for (size_t at = svg.find(what); at != svg.npos; at = svg.find(what, at + 1))
            found++;
        return found;
    };
    CHECK(count("<script") == 1);
    CHECK(count("</script") == 1);
    CHECK(count("]]>") == 1);
    CHECK(count("</title>") == stack.size());
    CHECK(count("<g ") == stack.size());
    CHECK(svg.find("onload='") == svg.npos);
    CHECK(svg.find('\x1b') == svg.npos);
    CHECK(svg.find("&lt;script&gt;") != svg.npos);
    CHECK(svg.find("cudalaunch -U &lt;&amp;&gt;") != svg.npos);
    CHECK(svg.find("launches, 7 in total") != svg.npos);
}

TEST_CASE("the widest frames are shown, and the others are reported", "[flames]")
{
    StackTree tree;
    for (int i = 0; i < 30'000; i++)
        tree.add(std::vector<std::string>{"a", std::to_string(i)}, i == 29'999 ? 1000 : 1);
    const std::string svg = svg_flames(flames_of(tree));
    CHECK(svg.find("10001 frames are too narrow to be shown") != svg.npos);
    CHECK(svg.find("<title>29999\n1,000, ") != svg.npos);
    CHECK(svg_flames(flames_of(StackTree())).find("there is nothing to show") != std::string::npos);
}

TEST_CASE("a profile has each stack once, the innermost frame first", "[flames]")
{
    const StackTree tree = tree_of({{{"p-1", "main (prog)", "k<int>"}, 300}, {{"p-1", "main (prog)"}, 2}});
    const std::string packed = pprof_flames(flames_of(tree, "bytes"));
    const auto profile = fields_of(unpacked(packed));
    std::vector<std::string> texts;
    const auto [first, last] = profile.equal_range(6);
    for (auto at = first; at != last; ++at)
        texts.push_back(at->second.bytes);
    REQUIRE(!texts.empty());
    CHECK(texts[0].empty());
    std::map<uint64_t, std::string> functions, locations;
    for (auto [at, end] = profile.equal_range(5); at != end; ++at) {
        const auto function = fields_of(at->second.bytes);
        functions[function.find(1)->second.number] = texts.at(function.find(2)->second.number);
        if (texts.at(function.find(2)->second.number) == "main")
            CHECK(texts.at(function.find(4)->second.number) == "prog");
    }
    for (auto [at, end] = profile.equal_range(4); at != end; ++at) {
        const auto location = fields_of(at->second.bytes);
        locations[location.find(1)->second.number] =
            functions.at(fields_of(location.find(4)->second.bytes).find(1)->second.number);
    }
    std::map<std::string, uint64_t> samples;
    for (auto [at, end] = profile.equal_range(2); at != end; ++at) {
        const auto sample = fields_of(at->second.bytes);
        std::string stack;
        for (const char id : sample.find(1)->second.bytes) // all ids are below 128, so each takes one byte
            stack += locations.at(static_cast<uint64_t>(id)) + ";";
        const std::string value = sample.find(2)->second.bytes;
        samples[stack] = value.size() == 1
                             ? static_cast<uint64_t>(value[0])
                             : (static_cast<uint64_t>(value[0]) & 0x7f) | static_cast<uint64_t>(value[1]) << 7;
    }
    CHECK(samples == std::map<std::string, uint64_t>{{"k<int>;main;p-1;", 300}, {"main;p-1;", 2}});
    const auto kind = fields_of(profile.find(1)->second.bytes);
    CHECK(texts.at(kind.find(1)->second.number) == "bytes");
    CHECK(texts.at(kind.find(2)->second.number) == "bytes");
    CHECK(profile.find(9)->second.number == captured::ten_o_clock);
    CHECK(profile.find(10)->second.number == 5'000'000'000);
}

TEST_CASE("the speedscope format is valid JSON for any names", "[flames]")
{
    const StackTree tree = tree_of({{{"p-1", hostile, "k"}, 3}, {{"p-1"}, 1}});
    const auto file = captured::json::parse(speedscope_flames(flames_of(tree, "total_ns")));
    const auto& profile = file.at("profiles").at(0);
    CHECK(profile.at("unit") == "nanoseconds");
    CHECK(profile.at("endValue") == 4);
    CHECK(profile.at("weights") == std::vector<int>{1, 3});
    CHECK(profile.at("samples") == std::vector<std::vector<int>>{{0}, {0, 1, 2}});
    CHECK(file.at("shared").at("frames").at(2).at("name") == "k");
}

TEST_CASE("a flame graph replaces only an older flame graph", "[flames]")
{
    const Folder folder;
    Options options;
    const auto draw = [&] {
        std::vector<SideOutput> sides;
        sides.push_back(make_flames_output(options));
        return captured::written(make_output_with_sides(make_text_output(false), std::move(sides)), [](Output& output) {
            output.start("cudalaunch", "1.0", std::nullopt);
            output.begin_table(columns, captured::ten_o_clock, 1);
            for (size_t number = 0; number < 3; number++)
                if (Output* const place = output.place_of_row(number, 1))
                    place->row(columns, {uint64_t{number}, std::string("a"), Cell(), uint64_t{4}, Cell(), Cell()}, {});
            output.end(5);
        });
    };
    options.weight = "launches";
    for (const FlameFormat& form : flame_formats())
        options.flames.emplace_back(form.option, folder.file(std::string(form.option)));
    for (int i = 0; i < 2; i++) {
        const captured::Written written = draw();
        CHECK(std::ranges::count(written.out, '\n') == 2); // the text shows one row
        const std::string svg = contents(folder.file("--svg"));
        CHECK(svg.find("cudalaunch: launches, 12 in total") != svg.npos);
        CHECK(svg.ends_with("</svg>\n"));
        CHECK_NOTHROW(captured::json::parse(contents(folder.file("--speedscope"))));
        CHECK(!unpacked(contents(folder.file("--pprof"))).empty());
    }
    options.flames = {{"--svg", folder.file("other")}};
    std::ofstream(folder.file("other")) << "int main() {}\n";
    CHECK_THROWS_AS(draw(), Error);
    CHECK(contents(folder.file("other")) == "int main() {}\n");
    REQUIRE(symlink("other", folder.file("link").c_str()) == 0);
    REQUIRE(mkfifo(folder.file("fifo").c_str(), 0600) == 0);
    for (const char* name : {"link", "fifo", "none/file"}) {
        options.flames = {{"--svg", folder.file(name)}};
        CHECK_THROWS_AS(draw(), Error);
    }
}
