// SPDX-License-Identifier: Apache-2.0
// Non-blocking request to a service on the loopback address. The service is not trusted and cannot delay the caller,
// which polls for the response. The response is limited in size and time.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/socket.h>

namespace gpusnoop {

// Everything the service sent until it closed the connection.
struct LoopbackResponse {
    std::string text;
    std::string error{}; // if not empty, `text` is empty
};

class LoopbackRequest {
public:
    struct Parameters {
        uint16_t port = 0;
        int family = AF_UNSPEC; // AF_INET, AF_INET6, or AF_UNSPEC to try both in this order ("localhost" may be either)
        std::string request;
        size_t max_bytes = 0; // limit of the response
        uint64_t timeout_ns = 0;
    };
    explicit LoopbackRequest(Parameters parameters) : parameters_(std::move(parameters)) {}

    bool pending() const { return static_cast<bool>(socket_); }
    // Connects and sends the request. No effect while one is pending.
    void start(uint64_t now_ns);
    // To be called regularly. Returns the response, or the error, exactly once per request.
    std::optional<LoopbackResponse> poll(uint64_t now_ns);

private:
    bool connect_to_family(int family);
    bool send_request(); // false if the request has failed
    LoopbackResponse finish(std::string error);

    Parameters parameters_;
    Fd socket_;
    bool sent_ = false;
    int family_ = 0;
    uint64_t start_ns_ = 0;
    std::string received_;
    std::string connect_error_;
};

} // namespace gpusnoop
