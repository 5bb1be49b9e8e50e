// SPDX-License-Identifier: Apache-2.0
#include "screen/preferences.hpp"
#include "tests/unit/base/error_of.hpp"
#include "tests/unit/screen/screen_fixture.hpp"

using namespace gpusnoop;
using namespace std::chrono_literals;

namespace {

const ScreenOptions at_first{.sort = "launches_per_second"};

std::string why_not(std::string_view text)
{
    return error_of([&] { preferences_in(text); });
}

} // namespace

TEST_CASE("preferences contain only settings changed by keys", "[screen]")
{
    Stage stage;
    CHECK(chosen(stage.state, at_first) == Preferences());
    stage.press(U"<r+t2M");
    const Preferences kept = chosen(stage.state, at_first);
    CHECK(kept.order == Preferences::Order{"comm", false});
    CHECK(kept.interval == 2s);
    CHECK(kept.tree == true);
    CHECK(kept.by == "thread");
    CHECK(kept.mouse == false);
    CHECK(!kept.columns);
    CHECK(!kept.colours);
    stage.press(U">-tM"); // changes all settings back, except the direction and the grouping
    stage.press(U"r");
    const Preferences back = chosen(stage.state, {.sort = "launches_per_second", .ascending = true});
    CHECK(!back.interval);
    CHECK(!back.tree);
    CHECK(!back.mouse);
}

TEST_CASE("chosen columns are kept, and new columns have their default", "[screen]")
{
    Stage stage;
    stage.press(U"c "); // hides PID
    stage.press(U">");  // does nothing: a hidden column does not move
    stage.press(key::home);
    stage.press(U">"); // moves USER after COMM
    const auto columns = chosen(stage.state, at_first).columns;
    REQUIRE(columns);
    CHECK(columns->hidden == std::vector<std::string>{"pid"});
    CHECK(columns->shown[0] == "comm");
    CHECK(columns->shown[1] == "user");
    stage.press(key::escape);

    ScreenOptions options = at_first;
    options.columns = columns;
    const Stage again({}, options);
    CHECK(again.lines()[4] == stage.lines()[4]);
    CHECK(again.state.shown == columns->shown);
    CHECK(chosen(again.state, options) == Preferences());

    options.columns = Preferences::Columns{{"comm", "nothing"}, {"pid", "user", "launches_per_second"}};
    const Stage few({}, options);
    CHECK(few.state.shown[0] == "comm");
    CHECK(few.state.shown[1] == "graph_launches_per_second");
    CHECK(few.lines()[4].starts_with("COMM "));
}

TEST_CASE("preferences survive writing and reading", "[screen]")
{
    const Preferences all{.by = "pod",
                          .order = Preferences::Order{"memory_bytes", true},
                          .columns = Preferences::Columns{{"pid", "comm"}, {"user"}},
                          .interval = 500ms,
                          .tree = true,
                          .mouse = false,
                          .colours = false};
    CHECK(preferences_in(preferences_text(all)) == all);
    CHECK(preferences_in(preferences_text({})) == Preferences());
    CHECK(preferences_in(R"({"of a later version": [1]})") == Preferences());
    CHECK(joined(all, {.interval = 2s}).interval == 2s);
    CHECK(joined(all, {.interval = 2s}).order == all.order);
    CHECK(joined({.tree = true}, {.tree = false}).tree == false);
}

TEST_CASE("invalid preferences are rejected with a reason", "[screen]")
{
    for (const char* text : {"", "{", "[]", "null", "\"by\"", "{\"by\": \"p\xff\"}", "{}{}"})
        CHECK(why_not(text) == "it is not a JSON object");
    CHECK(why_not(std::string(60000, '[')) == "it is not a JSON object");
    CHECK(why_not(std::string(30000, '[') + std::string(30000, ']')) == "it is not a JSON object");
    for (const char* text : {R"({"by": 1})", R"({"sort": null})", R"({"ascending": "yes"})", R"({"columns": "pid"})",
                             R"({"columns": ["pid", 1]})", R"({"columns": {"pid": 1}})", R"({"tree": 1})",
                             R"({"mouse": []})", R"({"interval_seconds": "1"})", R"({"interval_seconds": true})"})
        CHECK(why_not(text).ends_with("has a value of the wrong type"));
    for (const char* text : {"0", "0.09", "60.1", "-1", "1e300", "9223372036854775807"})
        CHECK(why_not(fmt::format(R"({{"interval_seconds": {}}})", text)).starts_with("its \"interval_seconds\" must"));
    CHECK(why_not(R"({"interval_seconds": 0.1})").empty());
    CHECK(why_not(R"({"columns": []})") == "its \"columns\" is empty");
    CHECK(why_not(R"({"columns": ["pid", "pid"]})") == "its \"columns\" lists a column twice");
}
