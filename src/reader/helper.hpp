// SPDX-License-Identifier: Apache-2.0
// Child process that does what may hang, grow or be attacked, and a channel for messages to it. Its status names what
// it works on, so that a hang or a crash can be blamed on something.
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
    Fd file; // that came with it, if one did
};

// One end of a pair of sockets that keep messages apart.
class Connection {
public:
    static constexpr size_t message_max = 128 << 10; // bytes

    struct Ends {
        Fd ours, theirs;
        int error = 0; // errno
    };
    static Ends pair();

    explicit Connection(Fd socket) : socket_(std::move(socket)) {}

    // False where the other side has gone or, with don't_wait, takes no more now.
    bool send(std::string_view bytes, int file = -1, bool dont_wait = false);
    // Waits no longer than that; nullopt: nothing has come, or the other side has gone (closed()).
    std::optional<Message> receive(std::chrono::milliseconds longest);
    std::optional<Message> receive(); // however long it takes
    bool closed() const { return closed_; }
    int descriptor() const { return socket_.get(); }

private:
    Fd socket_;
    std::string buffer_;
    bool closed_ = false;
};

class Helper {
public:
    // What a helper does. Its owner sees the status, whatever happens next.
    struct Task {
        Connection connection;
        std::function<void(std::string_view status)> set_status;
    };
    explicit Helper(const std::function<void(Task&)>& task);

    Connection& connection() { return connection_; }
    pid_t pid() const { return child_.pid(); }                               // -1 where there is none
    int error() const { return ends_.error ? ends_.error : child_.error(); } // errno, if it could not be started; or 0
    bool ended() { return child_.ended(); }
    void kill() { child_.kill(); }
    // The last one. Untrusted.
    std::string status() const;

private:
    static constexpr size_t status_max = 1024;
    struct Unmap {
        void operator()(char* page) const;
    };
    void run(const std::function<void(Task&)>& task) const;

    std::unique_ptr<char, Unmap> status_; // shared with it
    Connection::Ends ends_;
    Child child_;
    Connection connection_;
};

// The work of a helper that answers each Question with one structure, until its owner has gone. answer: takes a
// Question&.
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
