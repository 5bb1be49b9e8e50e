// SPDX-License-Identifier: Apache-2.0
// A service on the loopback address, whose answers the test controls.
#pragma once

#include "base/fd.hpp"
#include "base/loopback_request.hpp"

#include <arpa/inet.h>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>

namespace gpusnoop::loopback_service {

// Listens on a free port.
class Service {
public:
    Service() : listening_(socket(AF_INET, SOCK_STREAM, 0))
    {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        REQUIRE(bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
        REQUIRE(listen(listening_.get(), 1) == 0);
        REQUIRE(getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
        port = ntohs(address.sin_port);
    }
    void accept() { connection_ = Fd(::accept(listening_.get(), nullptr, nullptr)); }
    std::string request()
    {
        char text[256];
        const ssize_t got = recv(connection_.get(), text, sizeof(text), 0);
        return {text, static_cast<size_t>(got > 0 ? got : 0)};
    }
    void send_text(std::string_view text) { REQUIRE(send(connection_.get(), text.data(), text.size(), 0) > 0); }
    void end() { connection_ = Fd(); }
    void close() { listening_ = Fd(); }

    uint16_t port = 0;

private:
    Fd listening_, connection_;
};

// Polls a request until it returns a response.
inline LoopbackResponse answer(auto& request, uint64_t now_ns = 0)
{
    for (int i = 0; i < 5000; i++) {
        if (auto response = request.poll(now_ns))
            return *response;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    FAIL("no response");
    return {};
}

} // namespace gpusnoop::loopback_service
