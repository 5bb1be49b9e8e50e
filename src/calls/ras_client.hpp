// SPDX-License-Identifier: Apache-2.0
// NCCL's own RAS service: from 2.24 on, a thread of each rank's process listens on a TCP port of the loopback, knows
// those of all hosts, and says how far their ranks have come. Whoever listens there may be anybody, so nothing waits
// for it: a question is begun, and its answer taken when it is there.
#pragma once

#include "util/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace gpusnoop {

class RasClient {
public:
    static constexpr uint16_t usual_port = 28028;
    static constexpr size_t answer_max = 2 << 20;

    explicit RasClient(uint16_t port) : port_(port) {}

    struct Answer {
        std::string text;    // JSON
        std::string why_not; // in its place
    };

    bool asks() const { return static_cast<bool>(socket_); }
    // Unless it asks already.
    void ask(uint64_t now_ns);
    // To be called now and then; once for each question there is an answer.
    std::optional<Answer> take(uint64_t now_ns);

private:
    bool begin(int family);
    bool send_question();
    Answer end(std::string why_not);
    Answer finished();

    uint16_t port_;
    Fd socket_;
    bool sent_ = false;
    int family_ = 0;
    uint64_t since_ns_ = 0;
    std::string received_;
    std::string refused_; // why it could not be asked
};

} // namespace gpusnoop
