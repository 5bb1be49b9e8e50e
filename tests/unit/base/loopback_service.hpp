// SPDX-License-Identifier: Apache-2.0
// Somebody who listens on the loopback, and says what a test wants.
#pragma once

#include "base/fd.hpp"
#include "base/loopback_question.hpp"

#include <arpa/inet.h>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>

namespace gpusnoop::loopback_service {

// Listens on a port of its own.
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
    std::string question()
    {
        char text[256];
        const ssize_t got = recv(connection_.get(), text, sizeof(text), 0);
        return {text, static_cast<size_t>(got > 0 ? got : 0)};
    }
    void say(std::string_view text) { REQUIRE(send(connection_.get(), text.data(), text.size(), 0) > 0); }
    void end() { connection_ = Fd(); }
    void close() { listening_ = Fd(); }

    uint16_t port = 0;

private:
    Fd listening_, connection_;
};

// From whoever is to be asked for it with take().
inline LoopbackAnswer answer(auto& asked, uint64_t now_ns = 0)
{
    for (int i = 0; i < 5000; i++) {
        if (auto is = asked.take(now_ns))
            return *is;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    FAIL("no answer");
    return {};
}

} // namespace gpusnoop::loopback_service
