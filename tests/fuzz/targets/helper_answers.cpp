// SPDX-License-Identifier: Apache-2.0
// Messages from helpers. A malicious file may have taken over the helper that sends them.
#include "attach/search_messages.hpp"
#include "code/stack_messages.hpp"
#include "names/name_messages.hpp"
#include "tests/fuzz/target.hpp"
#include "who/containers.hpp"

using namespace gpusnoop;

namespace {

template<class Answer>
void try_as(std::string_view input)
{
    const auto answer = read_message<Answer>(input);
    if (!answer)
        return;
    const std::string bytes = message_of(*answer);
    const auto again = read_message<Answer>(bytes);
    expect(again && message_of(*again) == bytes, "the message survives a round trip");
    expect(bytes.size() <= input.size(), "the message does not grow");
    expect(!read_message<Answer>(bytes + '\0') &&
               !read_message<Answer>(std::string_view(bytes).substr(0, bytes.size() - 1)),
           "messages of another length are rejected");
}

} // namespace

void fuzz(std::string_view input)
{
    try_as<SearchAnswer>(input);
    try_as<NameAnswer>(input);
    try_as<StackAnswer>(input);
    try_as<ContainerAnswer>(input);
    try_as<PendingCallsAnswer>(input);
}
