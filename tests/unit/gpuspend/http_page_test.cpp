// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/dcgm.hpp"

#include "base/options.hpp"
#include "tests/unit/base/loopback_service.hpp"

#include <fmt/format.h>

using namespace gpusnoop;
using gpusnoop::loopback_service::answer;
using gpusnoop::loopback_service::Service;

TEST_CASE("only URLs on this machine are accepted", "[http]")
{
    const auto request_for = [](const char* url) { return http_request("--x", url, 100); };
    CHECK(request_for("http://127.0.0.1:9400/metrics").port == 9400);
    CHECK(request_for("http://127.0.0.1:9400/metrics").family == AF_INET);
    CHECK(request_for("http://[::1]:1/").family == AF_INET6);
    CHECK(request_for("http://[::1]").port == 80);
    CHECK(request_for("http://localhost").request == "GET / HTTP/1.0\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n");
    CHECK(request_for("http://localhost:9400").family == AF_UNSPEC);
    for (const char* url :
         {"http://10.0.0.1/", "http://example.com", "https://localhost/", "http://", "", "localhost:9400",
          "http://localhost:0/", "http://localhost:65536/", "http://localhost:x/", "http://localhost:/",
          "http://127.0.0.1@example.com/", "http://localhost/a b", "http://localhost/\r\nHost: x"})
        CHECK_THROWS_AS(request_for(url), UsageError);
}

TEST_CASE("http_body returns a complete body, or an error", "[http]")
{
    CHECK(http_body("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\na\nb").text == "a\nb");
    CHECK(http_body("HTTP/1.1 200 OK\r\nA: b\r\n\r\n").text.empty());
    const auto error = [](std::string_view text) { return http_body(text).error; };
    CHECK(error("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\na\nb") == "its answer is truncated");
    CHECK(error("HTTP/1.0 200 OK\r\nContent-Length: x\r\n\r\na") == "its answer is truncated");
    CHECK(error("HTTP/1.0 404 Not\x1b Found\r\n\r\na") == "it answers 'HTTP/1.0 404 Not\\x1B Found'");
    CHECK(error("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n").find("chunked") != std::string::npos);
    for (const char* none : {"", "220 smtp\r\n\r\n", "HTTP/1.0 200 OK\r\n", "HTTP/1.\r\n\r\n"})
        CHECK(!error(none).empty());
}

TEST_CASE("a page is read from a service", "[http]")
{
    Service service;
    LoopbackRequest request(http_request("--x", fmt::format("http://127.0.0.1:{}/metrics", service.port), 100));
    request.start(0);
    service.accept();
    CHECK(!request.poll(0));
    CHECK(service.request().starts_with("GET /metrics HTTP/1.0\r\n"));
    service.send_text("HTTP/1.0 200 OK\r\n\r\nx 1\n");
    service.end();
    CHECK(http_body(answer(request).text).text == "x 1\n");
}
