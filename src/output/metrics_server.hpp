// SPDX-License-Identifier: Apache-2.0
// HTTP server for Prometheus, with the paths /metrics and /healthz. It never waits for a client; slow and hostile
// clients are disconnected.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>

namespace gpusnoop {

class MetricsServer {
public:
    static constexpr size_t max_clients = 16; // when one more client connects, the oldest is disconnected
    static constexpr size_t request_max = 8192;
    static constexpr uint64_t max_connection_ns = 10'000'000'000; // a connection is closed after this time

    // address: "PORT" (on 127.0.0.1), "ADDRESS:PORT" or "[ADDRESS]:PORT", all numeric; port 0 means any free port.
    // Throws UsageError for an invalid address, and Error if the server cannot listen on it.
    explicit MetricsServer(std::string_view address);

    std::string address() const; // "127.0.0.1:9400"
    bool is_local() const;       // true if the server is not reachable from other machines

    void publish(std::string page);

    int descriptor() const { return events_.get(); } // readable when ready() should be called
    void ready(uint64_t now_ns);
    void tick(uint64_t now_ns); // call regularly; closes connections that take too long

private:
    struct Client {
        Fd socket;
        uint64_t connected_ns = 0;
        std::string request;
        std::string head;
        std::shared_ptr<const std::string> body;
        size_t sent = 0; // bytes of head and body sent so far
        bool has_response() const { return !head.empty(); }
    };
    using Clients = std::list<Client>;

    void accept_some(uint64_t now_ns);
    bool listen_for_clients(bool on);
    // Return false if the connection must be closed.
    bool receive(Client& client);
    bool send_more(Client& client);
    void prepare_response(Client& client);

    Fd events_;
    Fd listening_;
    bool paused_ = false; // no client is accepted until the next tick(), because the process has run out of descriptors
    Clients clients_;     // oldest first
    std::shared_ptr<const std::string> page_ = std::make_shared<const std::string>();
};

} // namespace gpusnoop
