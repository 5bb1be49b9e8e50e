// SPDX-License-Identifier: Apache-2.0
// Drawing of a screen on a canvas, as a pure function of the screen's state and a snapshot.
#pragma once

#include "screen/canvas.hpp"
#include "screen/screen_state.hpp"

#include <string>

namespace gpusnoop {

// Draws the whole screen in the size of the canvas, which may differ from state.size. If the snapshot is new, call
// clamp(state, snapshot) first.
void draw(Canvas& canvas, const ScreenState& state, const Snapshot& snapshot);

// Draws the last line: the prompt, a message, or key hints.
void draw_footer(Canvas& canvas, const Rect& rect, const ScreenState& state);

void draw_gpu(Canvas& canvas, const Rect& rect, const GpuState& gpu);

} // namespace gpusnoop
