// SPDX-License-Identifier: Apache-2.0
#include "base/json_strings.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

TEST_CASE("the strings of a JSON text are reported with their paths", "[containers]")
{
    std::vector<std::string> seen;
    const auto use = [&](const JsonPath& at, const std::string& text) {
        std::string line;
        for (const std::string& key : at)
            line += key + '/';
        seen.push_back(line + text);
    };
    CHECK(each_json_string(R"({"a":"1","b":[0,"2",[],["3"],{"c":"4"}],"d":{"e":null,"f":"5"},"":"6"})", use));
    CHECK(seen == std::vector<std::string>{"a/1", "b/1/2", "b/3/0/3", "b/4/c/4", "d/f/5", "/6"});
    CHECK(each_json_string("\"alone\"", use));
    CHECK(seen.size() == 6);
    CHECK(each_json_string(std::string(64, '[') + std::string(64, ']'), use));
    CHECK_FALSE(each_json_string(std::string(65, '[') + std::string(65, ']'), use));
    CHECK_FALSE(each_json_string("[\"1e999\", 1e999]", use));
    CHECK(seen.back() == "0/1e999");
}
