// SPDX-License-Identifier: Apache-2.0
#include "screen/keys.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <poll.h>
#include <unistd.h>

namespace gpusnoop {

namespace {

constexpr Key clicks = 0x40000000;
constexpr unsigned kind_shift = 24, y_shift = 12, coordinate = (1U << y_shift) - 1;

} // namespace

Key key_of(const Click& click)
{
    const auto bits = [](int value) { return static_cast<Key>(value) & coordinate; };
    return clicks | static_cast<Key>(click.kind) << kind_shift | bits(click.y) << y_shift | bits(click.x);
}

std::optional<Click> click_of(Key key)
{
    if (!(key & clicks))
        return std::nullopt;
    return Click{.kind = static_cast<Click::Kind>((key & ~clicks) >> kind_shift),
                 .x = static_cast<int>(key & coordinate),
                 .y = static_cast<int>(key >> y_shift & coordinate)};
}

std::vector<Key> without_sequences(const std::vector<Key>& typed)
{
    std::vector<Key> keys;
    for (size_t i = 0; i < typed.size(); ++i) {
        const Key next = i + 1 < typed.size() ? typed[i + 1] : 0;
        if (typed[i] != key::escape || (next != U'[' && next != U'O')) {
            keys.push_back(typed[i]);
            continue;
        }
        i += 2; // skips to the last byte of the sequence, which is a letter or '~'
        while (i < typed.size() && typed[i] >= 0x20 && typed[i] < 0x40)
            ++i;
    }
    return keys;
}

namespace {

using namespace std::chrono_literals;

// Main function of the helper process. Runs until the owner sends a message or exits.
void read_keys(int terminal, pid_t owner, Connection& connection)
{
    sigset_t background_read; // blocked so that reading in the background fails instead of stopping the process group
    sigemptyset(&background_read);
    sigaddset(&background_read, SIGTTIN);
    ::sigprocmask(SIG_BLOCK, &background_read, nullptr);
    std::string typed;
    std::array<pollfd, 2> sources{{{connection.descriptor(), POLLIN, 0}, {terminal, POLLIN, 0}}};
    while (sources[0].revents == 0) {
        if (::poll(sources.data(), sources.size(), -1) < 0 && errno != EINTR)
            return;
        if (sources[1].revents == 0)
            continue;
        std::array<char, TypedAhead::max_bytes> bytes{};
        const ssize_t size = ::read(terminal, bytes.data(), TypedAhead::max_bytes - typed.size());
        if (size > 0)
            typed.append(bytes.data(), static_cast<size_t>(size));
        const bool over = quits(typed) && ::getppid() == owner;
        if (over)
            ::kill(owner, SIGINT);
        if (over || size <= 0 || typed.size() == TypedAhead::max_bytes)
            sources[1].fd = -1;
    }
    // Reads the owner's message. If it stayed unread, close() would discard the reply that is sent here (ECONNRESET).
    connection.receive();
    connection.send(typed, -1, true);
}

} // namespace

TypedAhead::TypedAhead(int terminal)
    : helper_([owner = ::getpid()](Helper::Task& task) {
          if (const auto begin = task.connection.receive())
              read_keys(begin->file.get(), owner, task.connection);
      })
{
    helper_.connection().send("begin", terminal, true);
}

std::string TypedAhead::end()
{
    constexpr auto patience = 1s; // the reply usually takes less than a millisecond
    if (!helper_.connection().send("end", -1, true))
        return {};
    const auto typed = helper_.connection().receive(patience);
    return typed ? typed->bytes : std::string();
}

bool quits(std::string_view typed)
{
    static constexpr std::string_view f10 = "\033[21~";
    const size_t at = typed.find_first_of("q/\\wdsbc?!mhK\r\n\033"); // keys that open another view or a prompt, or quit
    return at != typed.npos && (typed[at] == 'q' || typed.substr(at).starts_with(f10));
}

} // namespace gpusnoop
