// SPDX-License-Identifier: Apache-2.0
// A page behind a port, for Prometheus: GET /metrics, and /healthz. It never waits for a client: a slow or hostile one
// costs itself its connection.
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
    static constexpr size_t max_clients = 16; // of more, the one that came first has to go
    static constexpr size_t request_max = 8192;
    static constexpr uint64_t max_connection_ns = 10'000'000'000; // from a client's coming to its going

    // address: "9400" (of loopback), "ADDRESS:PORT", "[ADDRESS]:PORT", in numbers; port 0: any. Throws UsageError where
    // it is none, and Error where nobody can listen there.
    explicit MetricsServer(std::string_view address);

    std::string address() const; // "127.0.0.1:9400"
    bool is_local() const;       // nobody outside this machine can ask

    void publish(std::string page);

    int descriptor() const { return events_.get(); } // readable when there is something for ready() to do
    void ready(uint64_t now_ns);
    void tick(uint64_t now_ns); // now and then: those go who take too long

private:
    struct Client {
        Fd socket;
        uint64_t since_ns = 0;
        std::string request;
        std::string head;
        std::shared_ptr<const std::string> body;
        size_t sent = 0; // of both
        bool answers() const { return !head.empty(); }
    };
    using Clients = std::list<Client>;

    void accept_some(uint64_t now_ns);
    bool listen_for_clients(bool on);
    // False: the client is to go.
    bool receive(Client& client);
    bool send_more(Client& client);
    void answer(Client& client);

    Fd events_;
    Fd listening_;
    bool paused_ = false; // there was no descriptor for who came: again with the next tick
    Clients clients_;     // in the order in which they came
    std::shared_ptr<const std::string> page_ = std::make_shared<const std::string>();
};

} // namespace gpusnoop
