// SPDX-License-Identifier: Apache-2.0
// HTTP server for Prometheus: GET /metrics and /healthz. It never waits for a client: slow and hostile clients are
// disconnected.
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
    static constexpr size_t max_clients = 16; // one more disconnects the oldest
    static constexpr size_t request_max = 8192;
    static constexpr uint64_t max_connection_ns = 10'000'000'000; // a connection is closed after this time

    // address: "9400" (on 127.0.0.1), "ADDRESS:PORT" or "[ADDRESS]:PORT", numeric; port 0: any free port. Throws
    // UsageError for an invalid address, and Error if it cannot listen there.
    explicit MetricsServer(std::string_view address);

    std::string address() const; // "127.0.0.1:9400"
    bool is_local() const;       // not reachable from other machines

    void publish(std::string page);

    int descriptor() const { return events_.get(); } // readable when ready() should be called
    void ready(uint64_t now_ns);
    void tick(uint64_t now_ns); // to be called regularly: closes connections that take too long

private:
    struct Client {
        Fd socket;
        uint64_t connected_ns = 0;
        std::string request;
        std::string head;
        std::shared_ptr<const std::string> body;
        size_t sent = 0; // bytes of head and body
        bool has_response() const { return !head.empty(); }
    };
    using Clients = std::list<Client>;

    void accept_some(uint64_t now_ns);
    bool listen_for_clients(bool on);
    // These return false if the connection is to be closed.
    bool receive(Client& client);
    bool send_more(Client& client);
    void prepare_response(Client& client);

    Fd events_;
    Fd listening_;
    bool paused_ = false; // out of descriptors for new clients; resumed by tick()
    Clients clients_;     // oldest first
    std::shared_ptr<const std::string> page_ = std::make_shared<const std::string>();
};

} // namespace gpusnoop
