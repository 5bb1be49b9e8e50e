// SPDX-License-Identifier: Apache-2.0
// A screen, drawn from its state and a snapshot and from nothing else.
#pragma once

#include "screen/canvas.hpp"
#include "screen/screen_state.hpp"

#include <string>

namespace gpusnoop {

// As it fits the canvas, whose size need not be the state's. The state has been settled with the snapshot.
void draw(Canvas& canvas, const ScreenState& state, const Snapshot& snapshot);

// One line of state.size.columns: what is typed in, a message or the keys.
void draw_footer(Canvas& canvas, const Rect& rect, const ScreenState& state);

void draw_gpu(Canvas& canvas, const Rect& rect, const GpuState& gpu);

} // namespace gpusnoop
