// SPDX-License-Identifier: Apache-2.0
// Answers of a helper that looks at the files of others, and may have been taken over by one.
#include "attach/search_messages.hpp"
#include "tests/fuzz/target.hpp"

using namespace gpusnoop;

void fuzz(std::string_view input)
{
    const auto answer = read_message<SearchAnswer>(input);
    if (!answer)
        return;
    const std::string bytes = message_of(*answer);
    const auto again = read_message<SearchAnswer>(bytes);
    expect(again && message_of(*again) == bytes, "what is taken can be told again");
    expect(bytes.size() <= input.size(), "there is no more than what was told");
    expect(!read_message<SearchAnswer>(bytes + '\0') &&
               !read_message<SearchAnswer>(std::string_view(bytes).substr(0, bytes.size() - 1)),
           "only the whole is taken");
}
