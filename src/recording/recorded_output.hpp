// SPDX-License-Identifier: Apache-2.0
// What is shown, and beside it a recording.
#pragma once

#include "output/output.hpp"
#include "recording/recording_file.hpp"

#include <memory>

namespace gpusnoop {

// All goes to both; end() throws Error where the recording is not whole, after all has been shown.
std::unique_ptr<Output> make_recorded_output(std::unique_ptr<Output> shown, std::unique_ptr<RecordingFile> file);

} // namespace gpusnoop
