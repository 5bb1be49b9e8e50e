// SPDX-License-Identifier: Apache-2.0
// Helper process for work that may hang, run out of memory or be attacked. It exchanges messages with its owner (the
// tool). Its status names the item that it works on, so that a hang or crash can be blamed on that item.
#pragma once

#include "base/fd.hpp"
#include "reader/child.hpp"
#include "reader/message.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace gpusnoop {

struct Message {
    std::string bytes;
    Fd file; // descriptor sent with the message, if any
};

// One end of a socket pair that preserves message boundaries.
class Connection {
public:
    static constexpr size_t message_max = 128 << 10; // bytes

    struct Ends {
        Fd ours, theirs;
        int error = 0; // errno of socketpair(); 0 if it succeeded
    };
    static Ends pair();

    explicit Connection(Fd socket) : socket_(std::move(socket)) {}

    // Returns false if the other end is closed, or if dont_wait is set and the socket's buffer is full.
    bool send(std::string_view bytes, int file = -1, bool dont_wait = false);
    // Waits up to timeout. Returns nullopt if no message arrives in that time, or if the other end is closed. closed()
    // distinguishes the two cases.
    std::optional<Message> receive(std::chrono::milliseconds timeout);
    std::optional<Message> receive(); // waits without a limit
    bool closed() const { return closed_; }
    int descriptor() const { return socket_.get(); }

private:
    Fd socket_;
    std::string buffer_;
    bool closed_ = false;
};

class Helper {
public:
    // Arguments of the helper's function. The owner can read the status even after a crash of the helper.
    struct Task {
        Connection connection;
        std::function<void(std::string_view status)> set_status;
    };
    explicit Helper(const std::function<void(Task&)>& task);

    Connection& connection() { return connection_; }
    pid_t pid() const { return child_.pid(); }                               // -1 if it is not running
    int error() const { return ends_.error ? ends_.error : child_.error(); } // errno if the start failed, else 0
    bool ended() { return child_.ended(); }
    void kill() { child_.kill(); }
    // The last status that the helper has set. Untrusted.
    std::string status() const;

private:
    static constexpr size_t status_max = 1024;
    struct Unmap {
        void operator()(char* page) const;
    };
    void run(const std::function<void(Task&)>& task) const;

    std::unique_ptr<char, Unmap> status_; // status text, in memory shared with the helper
    Connection::Ends ends_;
    Child child_;
    Connection connection_;
};

// Main function of a helper that answers each Question with one structure, until its owner exits. answer: function that
// is called with a Question& and returns that structure.
template<class Question>
void answer_each(Helper::Task& task, const auto& answer)
{
    while (const auto message = task.connection.receive()) {
        auto question = read_message<Question>(message->bytes);
        if (!question || !task.connection.send(message_of(answer(*question))))
            return;
    }
}

} // namespace gpusnoop
