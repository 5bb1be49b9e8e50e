// SPDX-License-Identifier: Apache-2.0
// Keys that navigate a recording, and keys that are disabled during replay.
#include "tests/unit/screen/screen_fixture.hpp"

#include <utility>

using namespace gpusnoop;

namespace {

struct Replaying : Stage {
    Replaying() : Stage({120, 24}) { snapshot.replayed = "REPLAY node1 1/9 1x"; }
};

std::vector<std::pair<Action::Kind, int>> asked(Stage& stage, std::u32string_view keys)
{
    std::vector<std::pair<Action::Kind, int>> all;
    for (const Action& action : stage.press(keys))
        all.emplace_back(action.kind, action.number);
    return all;
}

} // namespace

TEST_CASE("keys play a recording, step through it, and skip minutes")
{
    using Asked = std::vector<std::pair<Action::Kind, int>>;
    Replaying stage;
    CHECK(stage.shows("REPLAY node1 1/9 1x"));
    CHECK_FALSE(stage.shows("every"));
    const Asked all{{Action::play, 0}, {Action::speed, 1}, {Action::speed, -1}, {Action::step, -1},
                    {Action::step, 1}, {Action::leap, -1}, {Action::leap, 1}};
    CHECK(asked(stage, U" +-[]{}") == all);
    CHECK_FALSE(stage.state.paused);
    stage.press(key::enter); // the keys also work in an opened row
    CHECK(stage.state.view == View::detail);
    CHECK(asked(stage, U" +-[]{}") == all);
}

TEST_CASE("a recording has no keys for grouping, signals or the interval")
{
    Replaying stage;
    CHECK(stage.press(U"bKd").empty());
    CHECK(stage.state.view == View::list);
    CHECK(stage.state.prompt == Prompt::none);
    stage.press(U"?");
    CHECK(stage.shows("Keys of a recording"));
}

TEST_CASE("a live screen has no replay keys")
{
    Stage stage({120, 24});
    CHECK(stage.press(U"[{").empty());
    stage.press(U" ");
    CHECK(stage.state.paused);
}
