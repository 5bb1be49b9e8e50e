// SPDX-License-Identifier: Apache-2.0
// A question to a service of this machine, over the loopback and nowhere else. Whoever listens there may be anybody, so
// nothing waits for it: a question is begun, and its answer taken when it is there.
#pragma once

#include "base/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/socket.h>

namespace gpusnoop {

// What came until the other side has ended the connection.
struct LoopbackAnswer {
    std::string text;
    std::string why_not{}; // in its place
};

class LoopbackQuestion {
public:
    struct About {
        uint16_t port = 0;
        int family = AF_UNSPEC; // AF_INET, AF_INET6, or both in this order: "localhost" is the one or the other
        std::string question;
        size_t largest = 0; // answer
        uint64_t patience_ns = 0;
    };
    explicit LoopbackQuestion(About about) : about_(std::move(about)) {}

    bool asks() const { return static_cast<bool>(socket_); }
    // Unless it asks already.
    void ask(uint64_t now_ns);
    // To be called now and then; once for each question there is an answer.
    std::optional<LoopbackAnswer> take(uint64_t now_ns);

private:
    bool begin(int family);
    bool send_question();
    LoopbackAnswer end(std::string why_not);

    About about_;
    Fd socket_;
    bool sent_ = false;
    int family_ = 0;
    uint64_t since_ns_ = 0;
    std::string received_;
    std::string refused_; // why it could not be asked
};

} // namespace gpusnoop
