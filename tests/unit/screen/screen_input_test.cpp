// SPDX-License-Identifier: Apache-2.0
// Keys, the mouse and prompts.
#include "screen/list_view.hpp"
#include "tests/unit/screen/screen_fixture.hpp"

#include <algorithm>
#include <csignal>
#include <random>

using namespace gpusnoop;
using namespace std::chrono_literals;

TEST_CASE("a filter is applied while it is typed", "[screen]")
{
    Stage stage;
    CHECK(stage.after(U"/l").order() == "1005 1003 1002 1001 "); // evil, alice, leaker, alice
    CHECK(stage.after(U"eak").order() == "1002 ");
    CHECK(stage.shows("Filter: leak_"));
    CHECK(stage.after(key::backspace, key::enter).state.arrangement.filter == "lea");
    CHECK(stage.shows("Filter: lea (Esc clears)"));
    CHECK(stage.shows("rows 1/6"));
    CHECK(stage.after(key::escape).state.arrangement.filter.empty());
    CHECK(stage.after(U"/zzz").shows("No row matches the filter."));
    CHECK(stage.after(key::escape).state.arrangement.filter.empty());
    CHECK(stage.after(U"/\u8a13q").state.arrangement.filter == "\u8a13q"); // q is text here
    CHECK(stage.after(key::clear_line).state.arrangement.filter.empty());
}

TEST_CASE("an unknown key adds a message", "[screen]")
{
    Stage stage;
    stage.press(U"JJZ"); // several keys at once may be pasted text, so only one message is added
    CHECK(stage.shows("no such key: J (? lists all keys)"));
    CHECK(stage.state.messages.all().size() == 1);
    for (const std::u32string_view view : {U"", U"?", U"m", U"!", U"s", U"b", U"c", U"\r"}) {
        stage.press(view);
        stage.state.now += 10;
        stage.press(key::f9);
        CHECK(stage.state.messages.current(stage.state.now)->text == "no such key: F9 (? lists all keys)");
        stage.press(key::escape);
    }
    const size_t messages = stage.state.messages.all().size();
    stage.state.now += 10;
    for (const Key nothing : {Key{0}, Key{7}, Key{0x7f}, key_of({Click::press, 500, 0})})
        stage.press(nothing);
    CHECK(stage.state.messages.all().size() == messages);
}

TEST_CASE("the mouse", "[screen]")
{
    Stage stage;
    const auto line_of = [&](std::string_view text) {
        const std::vector<std::string> lines = stage.lines();
        const auto is_it = [text](const std::string& line) { return line.find(text) != std::string::npos; };
        return static_cast<int>(std::ranges::find_if(lines, is_it) - lines.begin());
    };
    const auto click = [&](int x, int y) { return stage.press(key_of({Click::press, x, y})); };

    SECTION("a click selects a row, and the next one opens it")
    {
        CHECK(click(3, line_of("1003")).empty());
        CHECK(stage.state.selected == "1003");
        CHECK(stage.state.view == View::list);
        const std::vector<Action> actions = click(60, line_of("1003"));
        CHECK(stage.state.view == View::detail);
        REQUIRE(!actions.empty());
        CHECK(actions[0].text == "1003");
        click(3, 3);
        CHECK(stage.state.view == View::detail);
    }
    SECTION("a click on a header sorts by it, and the next one reverses the order")
    {
        const int y = line_of("LAUNCH/s");
        const auto x = static_cast<int>(stage.lines()[static_cast<size_t>(y)].find("GRAPH/s"));
        click(x + 2, y);
        CHECK(stage.state.arrangement.sort == "graph_launches_per_second");
        CHECK_FALSE(stage.state.arrangement.ascending);
        click(x + 2, y);
        CHECK(stage.state.arrangement.ascending);
    }
    SECTION("the wheel selects other rows")
    {
        const std::string first = stage.order().substr(0, 4);
        stage.press(key_of({Click::wheel_down}));
        CHECK(stage.state.selected == stage.order().substr(15, 4));
        CHECK(stage.after(key_of({Click::wheel_up})).state.selected == first);
    }
    SECTION("choices")
    {
        stage.press(U"b");
        click(3, 4);
        CHECK(stage.state.choice == 3);
        CHECK(click(3, 4)[0].text == "pod");
    }
    SECTION("a click beside rows and headers, or during a prompt, does nothing")
    {
        stage.press(U"/");
        click(3, line_of("1003"));
        CHECK(stage.state.selected.empty());
        stage.press(key::escape);
        for (int y = 0; y < 40; ++y)
            for (const int x : {0, 79, 4095})
                if (y < 3 || y > 20)
                    click(x, y);
        CHECK(stage.state.view == View::list);
    }
    SECTION("M turns the mouse off")
    {
        CHECK(stage.press(U"M")[0].kind == Action::mouse);
        CHECK_FALSE(stage.state.mouse);
    }
}

TEST_CASE("K sends a signal to a process after a confirmation", "[screen]")
{
    Stage stage;
    CHECK(stage.after(U"K").state.prompt == Prompt::none); // these rows are not single processes
    CHECK(stage.state.messages.all().size() == 1);
    for (TopRow& row : stage.snapshot.rows)
        row.process = {static_cast<uint32_t>(std::stoul(row.id)), 7};
    stage.state.selected = "1002";
    for (const std::u32string_view no : {U"n", U"\r", U"\033", U"K", U"q"}) {
        CHECK(stage.after(U"K").shows("Send SIGTERM to 1002 bob leaker? y/N; 9: SIGKILL"));
        CHECK(stage.press(no).empty());
        CHECK(stage.state.prompt == Prompt::none);
    }
    const std::vector<Action> actions = stage.press(U"Ky");
    REQUIRE(actions.size() == 1);
    CHECK(actions[0].kind == Action::signal);
    CHECK(actions[0].process.pid == 1002);
    CHECK(actions[0].process.start_ns == 7);
    CHECK(actions[0].number == SIGTERM);
    stage.press(U"\r");
    CHECK(stage.press(U"K9")[0].number == SIGKILL);
    stage.snapshot.rows.clear(); // the process has exited
    CHECK(stage.after(U"K").state.prompt == Prompt::none);
}

TEST_CASE("typing replaces the proposed file name, and backspace edits it", "[screen]")
{
    Stage stage;
    stage.press(U"w");
    const std::string proposed = stage.state.input;
    CHECK(proposed.ends_with(".txt"));
    CHECK(stage.after(U"a.json").state.input == "a.json");
    stage.after(key::escape, U"w");
    CHECK(stage.after(key::backspace, U"T").state.input == proposed.substr(0, proposed.size() - 1) + "T");
}

TEST_CASE("searching", "[screen]")
{
    Stage stage;
    CHECK(stage.after(U"\\alice").state.selected == "1005");
    CHECK(stage.after(key::enter, U"n").state.selected == "1003");
    CHECK(stage.after(U"N").state.selected == "1005");
    CHECK(stage.after(U"N").state.selected == "1001"); // wraps around
    CHECK(stage.after(U"\\absent", key::enter, U"n").shows("no row contains 'absent'"));
}

TEST_CASE("the interval", "[screen]")
{
    Stage stage;
    const auto actions = stage.press(U"+");
    REQUIRE(actions.size() == 1);
    CHECK(actions[0].kind == Action::interval);
    CHECK(stage.state.interval == 2s);
    for (int i = 0; i < 20; ++i)
        stage.press(U"-");
    CHECK(stage.state.interval == 100ms);
    CHECK(stage.press(U"-").empty());
    stage.press(U"d2.5");
    CHECK(stage.press(key::enter).size() == 1);
    CHECK(stage.state.interval == 2500ms);
    for (std::u32string_view bad : {U"d61", U"d0.05", U"d1x", U"dnan", U"d-1"}) {
        stage.press(bad);
        CHECK(stage.press(key::enter).empty());
        CHECK(stage.state.interval == 2500ms);
    }
    CHECK(stage.shows("an interval must be 0.1 to 60 seconds, not '61'"));
}

TEST_CASE("the screen can be drawn after random keys at random sizes", "[screen]")
{
    std::mt19937 random(20260101);
    const auto upto = [&](int most) { return std::uniform_int_distribution(0, most)(random); };
    static constexpr std::u32string_view keys = U"<>rRft/\\nN+-dbcs?hmwz p123\r\x1b\x15 a1.\u8a13qjk";
    for (int round = 0; round < 30; ++round) {
        Stage stage;
        for (int i = 0; i < 150; ++i) {
            const auto extra = key::backspace + static_cast<Key>(upto(18));
            stage.press(upto(2) ? keys[static_cast<size_t>(upto(static_cast<int>(keys.size()) - 1))] : extra);
            if (upto(9) == 0)
                stage.state.size = {1 + upto(upto(1) ? 200 : 5), 1 + upto(upto(1) ? 60 : 5)};
            if (upto(5) == 0) {
                stage.cast = {static_cast<size_t>(upto(60)), static_cast<size_t>(upto(10))};
                stage.next();
            }
            clamp(stage.state, stage.snapshot);
            REQUIRE(stage.lines().size() == static_cast<size_t>(stage.state.size.lines));
        }
    }
}

TEST_CASE("escape sequences of unknown keys are removed as a whole", "[screen]")
{
    using Keys = std::vector<Key>;
    CHECK(without_sequences({}).empty());
    CHECK(without_sequences({U'q', key::escape}) == Keys{U'q', key::escape});
    CHECK(without_sequences({key::escape, U'[', U'1', U';', U'5', U'A', U'q'}) == Keys{U'q'});
    CHECK(without_sequences({key::escape, U'O', U'Z', key::escape}) == Keys{key::escape});
    CHECK(without_sequences({key::escape, U'[', U'3'}).empty());
    CHECK(without_sequences({key::escape, U'q'}) == Keys{key::escape, U'q'});
}
