// SPDX-License-Identifier: Apache-2.0
// Messages of the NVML helper, whose memory NVML may have corrupted.
#include "gpu/nvml_service.hpp"
#include "tests/fuzz/target.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    const auto answers = answers_from(input);
    if (!answers)
        return;
    const std::string bytes = to_bytes(*answers);
    const auto again = answers_from(bytes);
    expect(again && to_bytes(*again) == bytes, "the message survives a round trip");
    expect(bytes.size() <= input.size(), "the message does not grow");
    expect(!answers_from(bytes + '\0') && !answers_from(std::string_view(bytes).substr(0, bytes.size() - 1)),
           "messages of another length are rejected");
}
