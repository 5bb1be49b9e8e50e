// SPDX-License-Identifier: Apache-2.0
// A recording, beside what is shown.
#pragma once

#include "output/outputs_beside.hpp"
#include "output/recording_file.hpp"

#include <memory>

namespace gpusnoop {

OutputBeside make_recorded_output(std::unique_ptr<RecordingFile> file);

} // namespace gpusnoop
