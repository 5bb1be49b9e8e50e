// SPDX-License-Identifier: Apache-2.0
// A screen without a terminal: its state, the scene's snapshots, key presses, and the drawn text.
#pragma once

#include "screen/draw.hpp"
#include "screen/screen_state.hpp"
#include "tests/screen/scene.hpp"
#include "tests/unit/screen/locale_fixture.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace gpusnoop {

struct Stage {
    explicit Stage(Size size = {}, const ScreenOptions& options = {.sort = "launches_per_second"}) : state(options)
    {
        state.size = size;
        state.glyphs = Glyphs::braille;
        next();
    }

    void next()
    {
        snapshot = scene::snapshot(cast, interval++);
        clamp(state, snapshot);
        state.history.add(snapshot);
    }

    std::vector<Action> press(std::u32string_view keys)
    {
        std::vector<Action> actions;
        for (Key key : keys)
            std::ranges::move(gpusnoop::press(state, snapshot, key), std::back_inserter(actions));
        return actions;
    }
    std::vector<Action> press(Key key) { return press(std::u32string_view(&key, 1)); }

    // Presses keys, each a Key or several characters.
    Stage& after(auto... keys)
    {
        (press(keys), ...);
        return *this;
    }

    std::vector<std::string> lines() const
    {
        Canvas canvas(state.size.columns, state.size.lines);
        draw(canvas, state, snapshot);
        std::vector<std::string> result;
        for (int y = 0; y < canvas.lines(); ++y)
            result.push_back(canvas.line_text(y));
        return result;
    }

    // The text of the whole screen.
    std::string text() const
    {
        std::string result;
        for (const std::string& line : lines())
            result += line + "\n";
        return result;
    }

    bool shows(std::string_view what) const { return text().find(what) != std::string::npos; }

    // Ids of the list's rows, from top to bottom.
    std::string order() const
    {
        std::string result;
        for (const TopRow* row : arrange(snapshot, state.arrangement))
            result += row->id + " ";
        return result;
    }

    Locale locale{"C.UTF-8"};
    scene::Cast cast;
    uint64_t interval = 0;
    ScreenState state;
    Snapshot snapshot;
};

} // namespace gpusnoop
