// SPDX-License-Identifier: Apache-2.0
// Draws a screen on a canvas. A pure function of the screen's state and a snapshot.
#pragma once

#include "screen/canvas.hpp"
#include "screen/screen_state.hpp"

#include <string>

namespace gpusnoop {

// Draws to fit the canvas, whose size may differ from the state's. Call clamp() first if the snapshot is new.
void draw(Canvas& canvas, const ScreenState& state, const Snapshot& snapshot);

// One line: the prompt, a message, or the key hints.
void draw_footer(Canvas& canvas, const Rect& rect, const ScreenState& state);

void draw_gpu(Canvas& canvas, const Rect& rect, const GpuState& gpu);

} // namespace gpusnoop
