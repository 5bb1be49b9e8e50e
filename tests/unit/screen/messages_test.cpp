// SPDX-License-Identifier: Apache-2.0
#include "screen/screen_state.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

std::string shown(const Messages& messages, double now)
{
    const Messages::Message* message = messages.current(now);
    return message ? message->text : "";
}

} // namespace

TEST_CASE("a withdrawn message disappears, and the next message is shown in its place", "[messages]")
{
    Messages messages;
    for (const char* text : {"a", "b", "c"})
        messages.add(text, 0); // 5 s each
    CHECK(shown(messages, 1) == "a");
    messages.withdraw("a", 2);
    CHECK(shown(messages, 2) == "b");
    CHECK(shown(messages, 6.9) == "b");
    messages.withdraw("c", 3); // not shown yet
    CHECK(shown(messages, 6.9) == "b");
    CHECK(shown(messages, 7.1) == "");
    CHECK(messages.all().size() == 3); // all are kept for the page of messages
    messages.withdraw("b", 8);
    messages.withdraw("unknown", 8);
    messages.add("d", 8);
    CHECK(shown(messages, 9) == "d");
    messages.withdraw("a", 9); // no longer shown anyway
    CHECK(shown(messages, 12.9) == "d");
}
