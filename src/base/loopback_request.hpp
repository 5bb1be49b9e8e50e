// SPDX-License-Identifier: Apache-2.0
// Non-blocking request to a service on the loopback address. The service is not trusted. The caller polls for the
// response, so the service cannot block the caller. Size and duration of the response are limited.
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
        int family = AF_UNSPEC; // AF_UNSPEC: try AF_INET, then AF_INET6, because the service may listen on either
        std::string request;
        size_t max_bytes = 0; // maximum length of the response
        uint64_t timeout_ns = 0;
    };
    explicit LoopbackRequest(Parameters parameters) : parameters_(std::move(parameters)) {}

    bool pending() const { return static_cast<bool>(socket_); }
    // Connects and sends the request. Does nothing while a request is pending.
    void start(uint64_t now_ns);
    // Must be called regularly. Returns the response or the error of each request once, and nullopt otherwise.
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
