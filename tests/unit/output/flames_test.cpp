// SPDX-License-Identifier: Apache-2.0
// Flame graphs: weights are summed correctly, and names are escaped in all formats.
#include "base/error.hpp"
#include "output/flame_formats.hpp"
#include "output/flames_output.hpp"
#include "tests/unit/base/folder.hpp"
#include "tests/unit/output/captured.hpp"

#include <fstream>
#include <map>

using namespace gpusnoop;

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

uint64_t varint(std::string_view& bytes)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        REQUIRE(!bytes.empty());
        const auto byte = static_cast<unsigned char>(bytes[0]);
        bytes.remove_prefix(1);
        value |= uint64_t{byte & 0x7fU} << shift;
        if (!(byte & 0x80))
            return value;
    }
}

// A decoded Protocol Buffers message.
struct Message {
    explicit Message(std::string_view bytes)
    {
        while (!bytes.empty()) {
            const uint64_t key = varint(bytes), value = varint(bytes);
            REQUIRE(((key & 7) == 0 || (key & 7) == 2));
            numbers[key >> 3] = value;
            if ((key & 7) == 2) {
                REQUIRE(value <= bytes.size());
                texts[key >> 3].emplace_back(bytes.substr(0, value));
                bytes.remove_prefix(value);
            }
        }
    }
    Message sub(uint64_t field) const { return Message(texts.at(field).at(0)); }

    std::map<uint64_t, uint64_t> numbers; // by field
    std::map<uint64_t, std::vector<std::string>> texts;
};

Options folded()
{
    Options options;
    options.folded = true;
    return options;
}

} // namespace

TEST_CASE("a stack consists of owner, process, frames and operation", "[flames]")
{
    const std::vector<std::string> stack = flame_stack(columns, {12UL, "a", "ns/p", Cell(), Cell(), "k<1>"}, frames);
    CHECK(stack == std::vector<std::string>{"a-12", "odd\\x0A(x", "f<a;b>(int) (my prog)", "read (libc.so.6)",
                                            "0xffff_[k]", "schedule_[k]", "k<1>"});
    std::vector<Column> by_pod(std::begin(columns), std::end(columns));
    by_pod[2].in_text = true;
    CHECK(flame_stack(by_pod, {Cell(), Cell(), "ns/p"}, {}) == std::vector<std::string>{"ns/p", "?"});
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
                output.row(held, {1UL, "a", AtLeast{bytes}}, frames);
                output.row(held, {2UL, "b", Cell()}, frames);
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
            output.event(line, {1UL, 700UL}, {});
            output.event(line, {1UL, 500UL}, {});
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
    const std::vector<std::string> stack =
        flame_stack(columns, {1UL, hostile, Cell(), 1UL, Cell(), hostile}, std::vector<std::string>{hostile});
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
    const Message profile(captured::unpacked(pprof_flames(flames_of(tree, "bytes"))));
    const std::vector<std::string>& texts = profile.texts.at(6);
    CHECK(texts[0].empty());
    std::map<uint64_t, std::string> functions, locations;
    for (const std::string& bytes : profile.texts.at(5)) {
        const Message function(bytes);
        functions[function.numbers.at(1)] = texts.at(function.numbers.at(2));
        if (texts.at(function.numbers.at(2)) == "main")
            CHECK(texts.at(function.numbers.at(4)) == "prog");
    }
    for (const std::string& bytes : profile.texts.at(4))
        locations[Message(bytes).numbers.at(1)] = functions.at(Message(bytes).sub(4).numbers.at(1));
    std::map<std::string, uint64_t> samples;
    for (const std::string& bytes : profile.texts.at(2)) {
        const Message sample(bytes);
        std::string stack;
        for (std::string_view ids = sample.texts.at(1)[0]; !ids.empty();)
            stack += locations.at(varint(ids)) + ";";
        std::string_view value = sample.texts.at(2)[0];
        samples[stack] = varint(value);
    }
    CHECK(samples == std::map<std::string, uint64_t>{{"k<int>;main;p-1;", 300}, {"main;p-1;", 2}});
    CHECK(texts.at(profile.sub(1).numbers.at(1)) == "bytes");
    CHECK(texts.at(profile.sub(1).numbers.at(2)) == "bytes");
    CHECK(profile.numbers.at(9) == captured::ten_o_clock);
    CHECK(profile.numbers.at(10) == 5'000'000'000);
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
                    place->row(columns, {uint64_t{number}, "a", Cell(), 4UL, Cell(), Cell()}, {});
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
        CHECK(!captured::unpacked(contents(folder.file("--pprof"))).empty());
    }
    options.flames = {{"--svg", folder.file("other")}};
    std::ofstream(folder.file("other")) << "int main() {}\n";
    CHECK_THROWS_AS(draw(), Error);
    CHECK(contents(folder.file("other")) == "int main() {}\n");
}
