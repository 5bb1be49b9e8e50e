// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_worker.hpp"

#include "base/error.hpp"
#include "gpu/amd.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <poll.h>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace gpusnoop {
namespace {

constexpr size_t longest_answer = 16 << 20;

void send_all(int fd, std::string_view bytes)
{
    while (!bytes.empty()) {
        const ssize_t done = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (done <= 0)
            throw Error("nobody listens");
        bytes.remove_prefix(static_cast<size_t>(done));
    }
}

// Each answer behind its size.
void answer(const NvmlAnswers& answers)
{
    const std::string bytes = to_bytes(answers);
    const uint64_t size = bytes.size();
    send_all(Child::first_fd, {reinterpret_cast<const char*>(&size), sizeof(size)});
    send_all(Child::first_fd, bytes);
}

// NVIDIA's library and AMD's files, as far as they are there; `why` neither is.
std::vector<std::unique_ptr<Nvml>> open_all(const NvmlPlaces& places, std::string& why)
{
    std::vector<std::unique_ptr<Nvml>> all;
    if (auto nvml = Nvml::open(why, places))
        all.push_back(std::move(nvml));
    else if (places.is_named)
        return all;
    if (auto amd = open_amd_gpus(all.empty() ? 0 : all.front()->devices(), places.root))
        all.push_back(std::move(amd));
    if (!all.empty())
        why.clear(); // of places that were tried first
    return all;
}

template<class T>
void append(std::vector<T>& to, const std::vector<T>& more)
{
    to.insert(to.end(), more.begin(), more.end());
}

void serve(const NvmlPlaces& places, bool devices)
{
    NvmlAnswers first;
    const std::vector<std::unique_ptr<Nvml>> all = open_all(places, first.why);
    if (devices)
        for (const auto& one : all) { // from here on it is measured
            one->process_use();
            one->states();
        }
    answer(first);
    char question = 0;
    while (!all.empty() && read(Child::first_fd, &question, 1) == 1) {
        NvmlAnswers answers;
        for (const auto& one : all) {
            append(answers.processes, one->processes());
            append(answers.failures, one->failures());
            if (!devices)
                continue;
            append(answers.use, one->process_use());
            append(answers.states, one->states());
        }
        answer(answers);
    }
}

} // namespace

NvmlWorker::Ends NvmlWorker::connected()
{
    std::array<int, 2> ends{-1, -1};
    (void)socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data());
    return {Fd(ends[0]), Fd(ends[1])};
}

NvmlWorker::NvmlWorker(const NvmlPlaces& places, bool devices)
    : ends_(connected()), child_({ends_.theirs.get()}, [&] { serve(places, devices); })
{
    ends_.theirs = {}; // or its end would not be seen
}

std::optional<NvmlAnswers> NvmlWorker::ask(std::chrono::milliseconds longest)
{
    if (!asked_)
        asked_ = send(ends_.ours.get(), "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
    return receive(longest);
}

std::optional<NvmlAnswers> NvmlWorker::receive(std::chrono::milliseconds longest)
{
    const auto until = std::chrono::steady_clock::now() + longest;
    for (;;) {
        uint64_t size = 0;
        if (received_.size() >= sizeof(size)) {
            received_.copy(reinterpret_cast<char*>(&size), sizeof(size));
            if (size <= longest_answer && received_.size() >= sizeof(size) + size) {
                const auto answers = answers_from(std::string_view(received_).substr(sizeof(size), size));
                received_.erase(0, sizeof(size) + size);
                asked_ = false;
                return answers;
            }
        }
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        pollfd readable{ends_.ours.get(), POLLIN, 0};
        if (left.count() < 0 || poll(&readable, 1, static_cast<int>(left.count())) <= 0)
            return std::nullopt;
        std::array<char, 65536> buffer;
        const ssize_t got = recv(ends_.ours.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got <= 0) {
            ended_ = got == 0 || errno != EAGAIN; // or crashed, or was never started
            return std::nullopt;
        }
        received_.append(buffer.data(), static_cast<size_t>(got));
    }
}

} // namespace gpusnoop
