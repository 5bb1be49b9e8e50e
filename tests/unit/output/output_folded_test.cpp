// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/output/captured.hpp"

using namespace gpusnoop;
using namespace gpusnoop::captured;

namespace {

constexpr Column named[] = {{"PID", "pid"}, {"COMM", "comm", Unit::text}, {"TIME(s)", "blocked_ns", Unit::seconds}};
const std::vector<std::string> frames = {"schedule+0x23 (kernel)", "0xffff (kernel)", "read+0xd (libc.so.6)",
                                         "f<a;b>(int)+0x1f (my prog)", "odd\n(x"};

} // namespace

TEST_CASE("folded stacks, outermost first", "[output]")
{
    const Written said = written(make_folded_output("comm", "blocked_ns"), [](Output& output) {
        output.start("cudagap", "1.0", std::nullopt);
        output.begin_table(named, ten_o_clock, 1);
        output.row(named, {uint64_t{1}, std::string("a; b"), uint64_t{849'050'000}}, frames);
        output.row(named, {uint64_t{1}, std::string("c"), Cell()}, frames);
        output.row(named, {uint64_t{1}, Cell(), uint64_t{2}}, {});
        output.end(5);
    });
    CHECK(said.out ==
          "a: b;odd\\x0A(x;f<a:b>(int) (my prog);read (libc.so.6);0xffff_[k];schedule_[k] 849050000\n? 2\n");
}

TEST_CASE("a row may have lists of several kinds below it", "[output]")
{
    const std::vector<std::string> wakers = {"one", "two"};
    const auto use = [&](Output& output) {
        const ExtraLines stack(frames);
        ExtraLines below("wakers", wakers);
        below.then = &stack;
        output.event(named, {uint64_t{1}, std::string("a"), uint64_t{2}}, below);
    };
    const std::vector<json> records = json_of(use);
    REQUIRE(records.size() == 1);
    CHECK(records[0].at("wakers") == wakers);
    CHECK(records[0].at("frames") == frames);
    CHECK(text_of(use).find("    two\n    schedule+0x23 (kernel)\n") != std::string::npos);
}
