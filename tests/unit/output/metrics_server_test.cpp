// SPDX-License-Identifier: Apache-2.0
#include "output/metrics_server.hpp"

#include "base/error.hpp"
#include "base/options.hpp"

#include <arpa/inet.h>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <vector>

using namespace gpusnoop;

namespace {

constexpr uint64_t second = 1'000'000'000;

uint16_t port_of(const MetricsServer& server)
{
    const std::string address = server.address();
    return static_cast<uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
}

Fd client_of(const MetricsServer& server, int receive_buffer = 0)
{
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (receive_buffer)
        setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_of(server));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    return fd;
}

void send_text(const Fd& client, std::string_view text)
{
    send(client.get(), text.data(), text.size(), MSG_NOSIGNAL);
}

void serve(MetricsServer& server, uint64_t now_ns = 0)
{
    pollfd ready{server.descriptor(), POLLIN, 0};
    for (int i = 0; i < 100 && poll(&ready, 1, 20) == 1; i++)
        server.ready(now_ns);
}

// Returns the response up to the end of the connection. Ends with "(open)" if the server keeps the connection open.
std::string answer(MetricsServer& server, const Fd& client)
{
    std::string all;
    for (int i = 0; i < 1000; i++) {
        serve(server);
        char part[65536];
        const ssize_t got = recv(client.get(), part, sizeof(part), MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return all;
        if (got < 0)
            return all + "(open)";
        all.append(part, static_cast<size_t>(got));
    }
    return all;
}

std::string response_to(MetricsServer& server, std::string_view request)
{
    const Fd client = client_of(server);
    serve(server);
    send_text(client, request);
    return answer(server, client);
}

} // namespace

TEST_CASE("the metrics server answers requests of Prometheus and the kubelet, and no others")
{
    MetricsServer server("0");
    CHECK(server.is_local());
    server.publish("a 1\n");
    const std::string page = response_to(server, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(page.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(page.find("Content-Length: 4\r\n") != page.npos);
    CHECK(page.ends_with("\r\n\r\na 1\n"));
    CHECK(response_to(server, "GET /metrics?a=b HTTP/1.0\n\n").ends_with("\r\n\r\na 1\n"));
    CHECK(response_to(server, "HEAD /metrics HTTP/1.1\r\n\r\n")
              .ends_with("Content-Length: 4\r\nConnection: close\r\n\r\n"));
    CHECK(response_to(server, "GET /healthz HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nok\n"));
    CHECK(response_to(server, "GET /etc/passwd HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    CHECK(response_to(server, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    CHECK(response_to(server, "\r\n\r\n").starts_with("HTTP/1.1 405 "));
    CHECK(response_to(server, std::string_view("\0\xff \0\r\n\r\n", 8)).starts_with("HTTP/1.1 405 "));
}

TEST_CASE("slow clients, endless requests and excess clients are disconnected", "[long]")
{
    MetricsServer server("127.0.0.1:0");
    server.publish(std::string(8 << 20, 'x'));

    const Fd endless = client_of(server);
    serve(server);
    send_text(endless, std::string(2 * MetricsServer::request_max, 'y'));
    CHECK(answer(server, endless).empty()); // closed

    const Fd slow = client_of(server, 4096); // sends a request, but does not read
    serve(server);
    send_text(slow, "GET /metrics HTTP/1.1\r\n\r\n");
    serve(server);
    const Fd silent = client_of(server);
    serve(server);
    server.publish("new\n");
    CHECK(response_to(server, "GET /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nnew\n"));
    server.tick(MetricsServer::max_connection_ns);
    CHECK(answer(server, silent) == "(open)");
    server.tick(MetricsServer::max_connection_ns + 1);
    CHECK(answer(server, silent).empty());
    CHECK(answer(server, slow).size() < 8 << 20); // the rest was dropped

    std::vector<Fd> many;
    for (size_t i = 0; i <= MetricsServer::max_clients; i++) {
        many.push_back(client_of(server));
        serve(server, second);
    }
    CHECK(answer(server, many.front()).empty()); // the oldest is disconnected
    CHECK(answer(server, many.at(1)) == "(open)");
}

TEST_CASE("invalid and busy addresses are errors")
{
    for (const char* wrong :
         {"", "x", "70000", "localhost:1", "127.0.0.1:", "127.0.0.1:1x", "[::1:1", "::1:1", "1.2.3:4"})
        CHECK_THROWS_AS(MetricsServer(wrong), UsageError);
    const MetricsServer first("0");
    CHECK_THROWS_AS(MetricsServer(first.address()), Error);
    CHECK_FALSE(MetricsServer("0.0.0.0:0").is_local());
}
