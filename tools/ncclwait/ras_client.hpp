// SPDX-License-Identifier: Apache-2.0
// NCCL's own RAS service: from 2.24 on, a thread of each rank's process listens on a TCP port of the loopback, knows
// those of all hosts, and says how far their ranks have come.
#pragma once

#include "base/loopback_question.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace gpusnoop {

class RasClient {
public:
    static constexpr uint16_t usual_port = 28028;
    static constexpr size_t answer_max = 2 << 20;

    explicit RasClient(uint16_t port);

    using Answer = LoopbackAnswer; // text: JSON

    bool asks() const { return question_.asks(); }
    // Unless it asks already.
    void ask(uint64_t now_ns) { question_.ask(now_ns); }
    // To be called now and then; once for each question there is an answer.
    std::optional<Answer> take(uint64_t now_ns);

private:
    LoopbackQuestion question_;
};

} // namespace gpusnoop
