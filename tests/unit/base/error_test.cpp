// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"

#include "tests/unit/base/pipe.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <string>
#include <thread>
#include <vector>

using namespace gpusnoop;

namespace {

// While it exists, redirects standard error to `to`.
class StandardError {
public:
    explicit StandardError(int to) : before_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) { ::dup2(to, STDERR_FILENO); }
    ~StandardError() { ::dup2(before_.get(), STDERR_FILENO); }
    StandardError(const StandardError&) = delete;
    StandardError& operator=(const StandardError&) = delete;

private:
    Fd before_;
};

std::string read_all(int fd)
{
    std::string text(1 << 20, '\0');
    text.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(fd, text.data(), text.size()))));
    return text;
}

} // namespace

TEST_CASE("messages to a blocked stderr are dropped and counted", "[util]")
{
    const Ends pipe = pipe_ends();
    const StandardError to(pipe.writing.get());
    const auto began = std::chrono::steady_clock::now();
    const std::string line(99, 'x');
    for (int i = 0; i < 2000; i++)
        warn(line);
    CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(5));
    const std::string first = read_all(pipe.reading.get());
    CHECK(first.size() > 60'000);
    warn("again");
    const std::string then = read_all(pipe.reading.get());
    CHECK(then.find("messages were dropped because stderr was blocked\n") != std::string::npos);
    CHECK(then.ends_with(": again\n"));
    const size_t shown = first.size() / (line.size() + std::string_view("gpusnoop: \n").size());
    CHECK(then.find(" " + std::to_string(2000 - shown) + " messages") != std::string::npos);
}

TEST_CASE("a failing write to stderr is ignored", "[util]")
{
    for (const char* path : {"/dev/full", "/"}) {
        const Fd file(::open(path, path[1] ? O_WRONLY | O_CLOEXEC : O_PATH | O_CLOEXEC));
        const StandardError to(file.get());
        warn("lost");
        print_stderr("lost\n");
    }
}

TEST_CASE("warn() is thread-safe while warnings are deferred", "[util]")
{
    std::vector<std::string> messages;
    const WarningRedirect to([&](std::string message) { messages.push_back(std::move(message)); });
    {
        const DeferredWarnings deferred;
        std::vector<std::jthread> threads;
        for (int t = 0; t < 8; t++)
            threads.emplace_back([] {
                for (int i = 0; i < 100; i++)
                    warn("one of many");
            });
    }
    CHECK(messages.size() == 800);
}

TEST_CASE("an error caused by a limit names the limit", "[util]")
{
    CHECK(errno_text(EMFILE).find("ulimit -n") != std::string::npos);
    CHECK(errno_text(EACCES) == "Permission denied");
}
