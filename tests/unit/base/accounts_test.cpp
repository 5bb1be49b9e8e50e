// SPDX-License-Identifier: Apache-2.0
#include "base/privileges.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

TEST_CASE("accounts are found by name, else by number", "[accounts]")
{
    constexpr std::string_view passwd =
        "root:x:0:0:root:/root:/bin/bash\n\n:x:1:1::/:\nno:x::2::/:\nshort:x:3\n"
        "ann:x:1000:100:Ann, B.:/home/ann:\n2000:x:1001:100::/home/d:/bin/sh\n"
        "second:x:1000:7::/b:/c\nlarge:x:4294967296:1::/:/\nbob:x:2000:100::/home/bob:/x";
    CHECK(parse_accounts(passwd).size() == 5);
    const auto ann = find_account(passwd, "ann");
    REQUIRE(ann);
    CHECK(ann->uid == 1000);
    CHECK(ann->gid == 100);
    CHECK(ann->home == "/home/ann");
    CHECK(ann->shell.empty());
    CHECK(find_account(passwd, "1000")->name == "ann"); // the first account with this uid
    CHECK(find_account(passwd, "2000")->uid == 1001);   // an account with this name
    CHECK(find_account(passwd, "bob")->shell == "/x");
    for (const char* none : {"", "an", "large", "4294967296", "-1", "short", "no", "1000x"})
        CHECK(!find_account(passwd, none));
}

TEST_CASE("groups of an account are found", "[accounts]")
{
    const UserAccount ann{.name = "ann", .uid = 1000, .gid = 100, .home = {}, .shell = {}};
    CHECK(groups_of("", ann) == std::vector<gid_t>{100});
    CHECK(groups_of("a:x:1:bob,ann\nb:x:2:anna\nc:x:100:ann\nd:x:y:ann\ne:x:5:ann,ann\nf:x:6", ann) ==
          std::vector<gid_t>{100, 1, 5});
}
