// SPDX-License-Identifier: Apache-2.0
#include "reader/answerer.hpp"

#include "base/error.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace gpusnoop;
using namespace std::chrono_literals;

namespace {

constexpr auto slow = 1s; // longer than the loop waits for helpers in all

// Says what it is told, but for a few words.
void echo(Helper::Task& task)
{
    while (const auto message = task.connection.receive()) {
        task.says("at " + message->bytes);
        if (message->bytes == "die")
            _exit(1);
        if (message->bytes == "hang")
            std::this_thread::sleep_for(1h);
        if (message->bytes == "slow")
            std::this_thread::sleep_for(slow);
        task.connection.send(message->bytes);
        if (message->bytes == "leave")
            _exit(0);
    }
}

struct Asked {
    std::vector<std::string> answers;
    unsigned begun_anew = 0;
    Answerer answerer{{.serve = echo,
                       .take =
                           [this](const Message& message) {
                               answers.push_back(message.bytes);
                               return message.bytes != "lie";
                           },
                       .begun_anew = [this] { begun_anew++; },
                       .consequence = "it is not asked again"}};
};

std::chrono::milliseconds time_of(const std::function<void()>& what)
{
    const auto begun = std::chrono::steady_clock::now();
    what();
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
}

} // namespace

TEST_CASE("answers are taken in their order", "[answerer]")
{
    Asked of;
    CHECK(of.answerer.post(getpid(), "first"));
    CHECK(of.answerer.post(0, "second"));
    CHECK(of.answerer.ask(getpid(), "third"));
    CHECK(of.answers == std::vector<std::string>{"first", "second", "third"});
    CHECK(of.begun_anew == 0);
}

TEST_CASE("a caller waits for as long as the budget lasts, and a late answer is not lost", "[answerer]")
{
    Asked of;
    CHECK(of.answerer.ask(getpid(), "first"));
    const auto waited = time_of([&] {
        CHECK(of.answerer.ask_or_post(getpid(), "slow") == Answerer::Outcome::pending);
        for (int i = 0; i < 10; i++)
            CHECK_FALSE(of.answerer.ask(getpid(), "behind it"));
    });
    CHECK(waited < slow - 200ms);
    CHECK(of.answerer.pending());
    CHECK(of.answerer.wait_until(std::chrono::steady_clock::now() + 20s));
    CHECK(of.answers.size() == 12);
    CHECK(of.answers[1] == "slow");
}

TEST_CASE("helpers that share a budget make the loop wait no longer than one", "[answerer]")
{
    WaitBudget waits;
    const auto echoes = [&] {
        return std::make_unique<Answerer>(
            Answerer::Work{.serve = echo, .take = [](const Message&) { return true; }, .consequence = ""}, &waits);
    };
    const auto first = echoes(), second = echoes(), third = echoes();
    const auto waited = time_of([&] {
        for (const auto* each : {&first, &second, &third})
            for (const pid_t about : {getpid(), getppid()})
                CHECK_FALSE((*each)->ask(about, "slow"));
    });
    CHECK(waited < slow - 200ms);
}

TEST_CASE("a process with slow answers gets a part of the helper, and others their answers", "[answerer]")
{
    Asked of;
    unsigned sent = 0;
    for (const auto begun = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - begun < 6s;) {
        sent += !of.answerer.pending() && of.answerer.post(getpid(), "slow");
        std::this_thread::sleep_for(20ms);
        of.answerer.hear();
    }
    CHECK(sent >= 2);
    CHECK(sent <= 4);
    CHECK(of.answerer.post(getppid(), "of another one"));
    CHECK(of.answerer.wait_until(std::chrono::steady_clock::now() + 20s));
    CHECK(of.answers.back() == "of another one");
}

TEST_CASE("what a helper has died of twice is not asked about again", "[answerer]")
{
    std::string said;
    const WarningsTo here([&said](const std::string& text) { said += text; });
    Asked of;
    CHECK_FALSE(of.answerer.ask(getpid(), "die"));
    CHECK(of.begun_anew == 1);
    CHECK_FALSE(of.answerer.barred(getpid()));
    std::this_thread::sleep_for(1100ms); // another one may begin
    CHECK(of.answerer.ask(getpid(), "still there"));
    CHECK(said.empty());
    CHECK_FALSE(of.answerer.ask(getpid(), "die"));
    CHECK(of.answerer.barred(getpid()));
    CHECK(said.find("at die (process " + std::to_string(getpid()) +
                    "): the helper that read it has died; it is not asked again") != std::string::npos);
    std::this_thread::sleep_for(1100ms);
    CHECK_FALSE(of.answerer.ask(getpid(), "anything"));
    CHECK(of.answerer.ask(getppid(), "of another one"));
}

TEST_CASE("a helper that ends while it has nothing to do is replaced at once, and nobody is blamed", "[answerer]")
{
    std::string said;
    const WarningsTo here([&said](const std::string& text) { said += text; });
    Asked of;
    CHECK(of.answerer.ask(getpid(), "leave"));
    std::this_thread::sleep_for(1100ms);
    CHECK(of.answerer.ask(getpid(), "leave"));
    std::this_thread::sleep_for(1100ms);
    CHECK(of.answerer.ask(getpid(), "last"));
    CHECK(of.begun_anew == 2);
    CHECK(said.empty());
}

TEST_CASE("who posts too much is refused, and who asks is not", "[answerer]")
{
    Asked of;
    unsigned posted = 0;
    while (of.answerer.post(getpid(), "slow"))
        posted++;
    CHECK(posted == 64);
    CHECK_FALSE(of.answerer.ask(getppid(), "last")); // it has to wait for the others
    CHECK(of.answers.empty());
}

TEST_CASE("what a helper hangs in is told, and not asked about again", "[answerer]")
{
    std::string said;
    const WarningsTo here([&said](const std::string& text) { said += text; });
    Asked of;
    const auto took = time_of([&] {
        CHECK_FALSE(of.answerer.ask(getpid(), "hang"));
        for (int i = 0; i < 100 && !of.answerer.barred(getpid()); i++) {
            std::this_thread::sleep_for(100ms);
            of.answerer.hear();
        }
    });
    CHECK(took > 2s);
    CHECK(took < 6s);
    CHECK(said.find("at hang (process " + std::to_string(getpid()) +
                    "): it cannot be read within 3 s; it is not asked again") != std::string::npos);
    CHECK_FALSE(of.answerer.ask(getpid(), "anything"));
    CHECK(of.answerer.ask(getppid(), "of another one"));
}

TEST_CASE("a helper that says what cannot be is replaced", "[answerer]")
{
    std::string said;
    const WarningsTo here([&said](const std::string& text) { said += text; });
    Asked of;
    CHECK_FALSE(of.answerer.ask(0, "lie"));
    CHECK(said.find("at lie: the helper that read it gives no answers any more") != std::string::npos);
    CHECK(of.begun_anew == 1);
    std::this_thread::sleep_for(1100ms);
    CHECK(of.answerer.ask(0, "truth"));
}
