// SPDX-License-Identifier: Apache-2.0
// Tests RasClient with a stand-in for NCCL's RAS service.
#include "tests/unit/base/loopback_service.hpp"
#include "tools/ncclwait/ras.hpp"

#include <catch2/generators/catch_generators.hpp>

using namespace gpusnoop;
using gpusnoop::loopback_service::answer;
using gpusnoop::loopback_service::Service;

namespace {

const char* const report = R"({"nccl_version": "2.29.7", "communicators": [
  {"hash": "0xab", "secondary_hash": "0x1:0x2", "size": 5, "ranks_count": 3, "missing_ranks_count": 1, "ranks": [
    {"rank": 0, "host": "10.0.0.1", "pid": 7, "status": {"async_error": 0}, "collective_counts": {"AllReduce": 9, "Reduce": 2}},
    {"rank": 2, "host": "10.0.0.2", "pid": 8, "status": {"async_error": 6}, "collective_counts": {"AllReduce": 8, "Reduce": 1}},
    {"rank": 1, "host": "10.0.0.1", "pid": 9, "status": {"async_error": 7}, "collective_counts": {"AllReduce": 9, "Reduce": 2}}],
   "missing_ranks": [{"rank": 4, "host": "10.0.0.3", "pid": 6, "status": {"unresponsive": true, "considered_dead": true}}]},
  {"hash": "0xffffffffffffffff", "size": 1, "ranks": [{"rank": 0, "collective_counts": {"AllReduce": 1}}], "missing_ranks": []}]})";

} // namespace

TEST_CASE("the client sends a request, and assembles an answer that arrives in pieces", "[ras]")
{
    Service service;
    RasClient client(service.port);
    CHECK(!client.poll(0));
    client.start(0);
    service.accept();
    CHECK(!client.poll(1));
    CHECK(service.request() == "CLIENT PROTOCOL 2\nSET FORMAT json\nSTATUS\n");
    service.send_text("SERVER PROTOCOL 2\nO");
    CHECK(!client.poll(2));
    service.send_text("K\n{}");
    CHECK(!client.poll(3));
    service.end();
    CHECK(answer(client).text == "{}");
    CHECK(!client.pending());
    CHECK(!client.poll(4));
}

TEST_CASE("the client reports why there is no answer", "[ras]")
{
    Service service;
    RasClient client(service.port);
    client.start(0);
    service.accept();
    CHECK(!client.poll(0));
    service.request(); // unread data would reset the connection
    SECTION("a version before JSON support, or another service")
    {
        const auto [text, why] =
            GENERATE(std::pair("SERVER PROTOCOL 2\nERROR: Unknown command SET FORMAT json\nNCCL version 2.24.3\n",
                               "older than 2.28.7"),
                     std::pair("220 smtp\n250 OK\n", "not NCCL's RAS service"));
        service.send_text(text);
        service.end();
        CHECK(answer(client).error.find(why) != std::string::npos);
    }
    SECTION("silent")
    {
        CHECK(!client.poll(15'000'000'000));
        CHECK(answer(client, 15'000'000'001).error == "no complete response within 15 s");
    }
    SECTION("endless")
    {
        const std::string much(1 << 16, ' ');
        std::optional<RasClient::Answer> received;
        for (int i = 0; i < 100 && !received; i++) {
            service.send_text(much);
            received = client.poll(0);
        }
        REQUIRE(received);
        CHECK(received->error == "its response is longer than 2 MiB");
    }
    SECTION("closed")
    {
        service.close();
        service.end();
        CHECK(!answer(client).error.empty());
        client.start(0);
        CHECK(answer(client).error == "Connection refused");
        CHECK(!client.poll(0));
    }
}

TEST_CASE("analyze finds ranks that are behind or missing", "[ras]")
{
    const auto all = parse_ras_report(report);
    REQUIRE(all);
    REQUIRE(all->size() == 2);
    CHECK(all->at(1).hash == UINT64_MAX);
    const RasFinding found = analyze(all->at(0));
    CHECK(found.ranks == std::vector<unsigned>{2, 4});
    CHECK(
        found.text ==
        "according to NCCL's RAS service (all hosts), ranks 2,4 of 5 are behind or missing; it has no data on 1 rank; "
        "error in rank 2");
    CHECK(found.lines ==
          std::vector<std::string>{"rank 2 (process 8 on 10.0.0.2) has launched 8 of 9 AllReduce, 1 of 2 Reduce",
                                   "rank 4 (process 6 on 10.0.0.3) is considered dead"});
    const RasFinding none = analyze(all->at(1));
    CHECK(none.ranks.empty());
    CHECK(none.text ==
          "according to NCCL's RAS service (all hosts), only one rank is known, so ranks cannot be compared");
}

TEST_CASE("malformed reports are rejected or ignored", "[ras]")
{
    for (const std::string_view text :
         {"", "x", "[]", "7", "{}", R"({"communicators": 7})", R"({"communicators": {}})"})
        CHECK(!parse_ras_report(text));
    for (const std::string_view text :
         {R"([7, null, [], "x", {}])", R"([{"hash": 7, "size": 1}])", R"([{"hash": "0x", "size": 1}])",
          R"([{"hash": "0x1g", "size": 1}])", R"([{"hash": "0x1", "size": -1}])", R"([{"hash": "0x1", "size": 1e99}])",
          R"([{"hash": "0x11111111111111111", "size": 1}])"}) {
        const auto all = parse_ras_report(std::string(R"({"communicators": )") + std::string(text) + "}");
        REQUIRE(all);
        CHECK(all->empty());
    }
    const auto odd = parse_ras_report(R"({"communicators": [{"hash": "0x1", "size": 2, "missing_ranks": 7, "ranks": [
        {"rank": 2}, {"rank": -1}, {"rank": "0"}, 7, {"rank": 1, "pid": "x", "host": 7, "collective_counts": [7],
         "status": []}, {"rank": 0, "collective_counts": {"AllReduce": -1, "Reduce": "x"}}]}]})");
    REQUIRE(odd);
    REQUIRE(odd->size() == 1);
    CHECK(odd->at(0).ranks.size() == 2);
    CHECK(analyze(odd->at(0)).ranks.empty());
    std::string deep = R"({"communicators": )";
    deep.append(1 << 20, '[');
    CHECK(!parse_ras_report(deep));
    deep.append(1 << 20, ']');
    CHECK(parse_ras_report(deep + "}"));
}

TEST_CASE("analyze lists at most 16 ranks that are behind", "[ras]")
{
    RasCommunicator communicator{.hash = 1, .size = 1000, .ranks = {}};
    for (unsigned rank = 0; rank < 1000; rank++)
        communicator.ranks.push_back({.rank = rank, .counts = {{"AllReduce", rank ? 1 : 2}}});
    const RasFinding found = analyze(communicator);
    CHECK(found.ranks.size() == 999);
    REQUIRE(found.lines.size() == 17);
    CHECK(found.lines.back() == "and 983 more");
}
