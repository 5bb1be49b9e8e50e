// SPDX-License-Identifier: Apache-2.0
#include "names/code_places.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

// Stacks 0 and 1 have the same text; stack 2 is at another line of the same function.
CodePlaces::Source made_up()
{
    return {[](const ImageId&, int32_t stack, uint64_t) {
                return Frames(std::vector<std::string>{stack < 2 ? "f (a.py:1)" : "f (a.py:2)"});
            },
            [](const ImageId&, int32_t stack, uint64_t) {
                return CodePlace{.function = "f", .file = "/x/a.py", .line = stack < 2 ? 1 : 2};
            }};
}

} // namespace

TEST_CASE("stacks with the same text share a number")
{
    CodePlaces places(CodePlaces::By::stack, made_up());
    const int32_t first = places.number_of({}, 0, 7);
    CHECK(places.number_of({}, 1, 8) == first);
    CHECK(places.number_of({}, 2, 7) != first);
    CHECK(places.frames(first).lines.front() == "f (a.py:1)");
}

TEST_CASE("places are distinguished by line, or by function")
{
    CodePlaces lines(CodePlaces::By::line, made_up());
    CHECK(lines.number_of({}, 0, 7) == lines.number_of({}, 1, 7));
    CHECK(lines.number_of({}, 0, 7) != lines.number_of({}, 2, 7));
    CHECK(line_text(lines.place(lines.number_of({}, 2, 7))) == "a.py:2 f");
    CodePlaces functions(CodePlaces::By::function, made_up());
    CHECK(functions.number_of({}, 0, 7) == functions.number_of({}, 2, 7));
    CHECK(line_text(functions.place(0)) == "a.py f");
}

TEST_CASE("clear() restarts the numbering")
{
    CodePlaces places(CodePlaces::By::line, made_up());
    places.number_of({}, 2, 7);
    places.clear();
    CHECK(places.number_of({}, 0, 7) == 0);
    CHECK(places.place(0).line == 1);
}

TEST_CASE("line_text() shows file, line and function, as far as they are known")
{
    CHECK(line_text({}).empty());
    CHECK(line_text({.function = "f", .file = "<string>", .line = 3}) == "<string>:3 f");
    CHECK(line_text({.function = "train::step", .file = "train", .line = {}}) == "train train::step");
}
