// SPDX-License-Identifier: Apache-2.0
// Pages: the open row, help, messages, plots.
#include "screen/list_view.hpp"
#include "tests/unit/screen/screen_fixture.hpp"

using namespace gpusnoop;

TEST_CASE("if the sort column is text, an open row plots the secondary sort column", "[screen]")
{
    Stage stage({}, {.sort = "comm", .then = "graph_launches_per_second"});
    CHECK(stage.after(key::enter).state.plotted == "graph_launches_per_second");
}

TEST_CASE("a row is opened and closed", "[screen]")
{
    Stage stage;
    stage.press(key::down);
    auto actions = stage.press(key::enter);
    REQUIRE(actions.size() == 2);
    CHECK((actions[0].kind == Action::open && actions[0].text == "1004"));
    CHECK(stage.state.plotted == "launches_per_second");
    CHECK(stage.shows("Nothing has been counted for this row yet."));
    stage.snapshot.detail = scene::detail("1004", 0);
    CHECK(stage.shows("void kernel_0<float>(float*, int)"));
    CHECK(stage.shows("copies by size"));
    CHECK(stage.after(U"h").state.plotted == "graph_launches_per_second");
    stage.after(key::left, key::left);
    CHECK(stage.state.plotted == "device_memory_bytes"); // the selection wraps around, and includes hidden columns
    stage.snapshot.detail_of = "1003";
    CHECK_FALSE(stage.shows("void kernel_0<float>(float*, int)")); // the detail belongs to another row
    stage.cast.rows = 2;
    stage.next();
    CHECK(stage.shows("1004 bob \u8a13\u7df4\u5668 (gone)"));
    actions = stage.press(key::escape);
    REQUIRE(actions.size() == 1);
    CHECK((actions[0].kind == Action::open && actions[0].text.empty()));
    CHECK(stage.state.view == View::list);
}

TEST_CASE("the help lists keys and every column", "[screen]")
{
    Stage stage({100, 80});
    CHECK(stage.after(U"?").shows("Ctrl-L"));
    for (const TopColumn& column : stage.snapshot.columns)
        CHECK(stage.shows(column.about));
    CHECK(stage.after(key::escape, U"h").state.view == View::help);
    CHECK(stage.press(U"q").empty());
    CHECK(stage.press(U"q").at(0).kind == Action::quit);
    CHECK(stage.press(key::f10).at(0).kind == Action::quit);
}

TEST_CASE("a message is shown for a while, and then kept on the page of messages", "[screen]")
{
    Stage stage;
    stage.state.messages.add("first", 0);
    stage.state.messages.add("second\x1b[2J", 0);
    stage.state.messages.add("second\x1b[2J", 1);
    CHECK(stage.lines().back() == "first");
    stage.state.now = 5.5;
    CHECK(stage.lines().back() == "second\\x1B[2J");
    stage.state.now = 60;
    CHECK(stage.lines().back().starts_with("?Help"));
    CHECK(stage.after(U"m").shows("second\\x1B[2J (2 times)"));
    for (int i = 0; i < 1000; ++i)
        stage.state.messages.add(std::to_string(i), 60);
    CHECK(stage.state.messages.all().size() == 200);
}

TEST_CASE("an open row with a problem plots the column that shows the problem", "[screen]")
{
    Stage stage;
    const std::string id = arrange(stage.snapshot, stage.state.arrangement).front()->id;
    Trouble trouble;
    trouble.column = "sync_percent";
    trouble.rows = {id};
    stage.snapshot.troubles = {trouble};
    CHECK(stage.after(key::enter).state.open == id);
    CHECK(stage.state.plotted == "sync_percent");
}

TEST_CASE("a plot does not change during a pause", "[screen]")
{
    Stage stage({80, 24});
    stage.next();
    stage.press(U"\rp");
    const std::string before = stage.text();
    stage.state.history.add(scene::snapshot(stage.cast, 2));
    ++stage.state.behind;
    CHECK(stage.text() == before);
    CHECK(stage.after(U"p").text() != before);
}
