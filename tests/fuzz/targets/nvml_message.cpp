// SPDX-License-Identifier: Apache-2.0
// Answers of the process that asks NVML, in which anything may have gone wrong.
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
    expect(again && to_bytes(*again) == bytes, "what is taken can be told again");
    expect(bytes.size() <= input.size(), "there is no more than what was told");
    expect(!answers_from(bytes + '\0') && !answers_from(std::string_view(bytes).substr(0, bytes.size() - 1)),
           "only the whole is taken");
}
