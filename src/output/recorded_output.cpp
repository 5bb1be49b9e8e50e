// SPDX-License-Identifier: Apache-2.0
#include "output/recorded_output.hpp"

namespace gpusnoop {

OutputBeside make_recorded_output(std::unique_ptr<RecordingFile> file)
{
    RecordingFile& written = *file;
    return {make_json_output(this_run(), std::move(file)), [&written] {
                written.finish();
                if (written.failure())
                    throw Error(*written.failure());
            }};
}

} // namespace gpusnoop
