// SPDX-License-Identifier: Apache-2.0
#include "reader/reader.hpp"

#include "base/error.hpp"
#include "reader/message.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace gpusnoop;
using namespace std::chrono_literals;

namespace {

using Clock = Reader::Clock;

constexpr auto slow = 1s; // longer than the loop may wait for helpers

// Sends each message back. Some messages make it hang, crash or wait.
void echo(Helper::Task& task)
{
    while (const auto message = task.connection.receive()) {
        task.set_status("item " + message->bytes);
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

struct EchoReader {
    std::vector<std::string> answers;
    std::string warnings;
    unsigned restarts = 0;
    WarningRedirect here{[this](const std::string& text) { warnings += text; }};
    Reader reader{{.serve = echo,
                   .apply =
                       [this](const Message& message) {
                           answers.push_back(message.bytes);
                           return message.bytes != "lie";
                       },
                   .restarted = [this] { restarts++; },
                   .consequence = "it is not asked again"}};
};

std::chrono::milliseconds time_of(const std::function<void()>& work)
{
    const auto begin = Clock::now();
    work();
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
}

} // namespace

TEST_CASE("answers are applied in the order of the questions", "[reader]")
{
    EchoReader echoes;
    CHECK(echoes.reader.post(getpid(), "first"));
    CHECK(echoes.reader.post(0, "second"));
    CHECK(echoes.reader.ask(getpid(), "third"));
    CHECK(echoes.answers == std::vector<std::string>{"first", "second", "third"});
    CHECK(echoes.restarts == 0);
}

TEST_CASE("a caller waits within the budget, and a late answer is applied later", "[reader]")
{
    EchoReader echoes;
    CHECK(echoes.reader.ask(getpid(), "first"));
    const auto waited = time_of([&] {
        CHECK(echoes.reader.ask_or_post(getpid(), "slow") == Reader::Outcome::pending);
        for (int i = 0; i < 10; i++)
            CHECK_FALSE(echoes.reader.ask(getpid(), "after it"));
    });
    CHECK(waited < slow - 200ms);
    CHECK(echoes.reader.is_pending());
    CHECK(echoes.reader.wait_until(Clock::now() + 20s));
    CHECK(echoes.answers.size() == 12);
    CHECK(echoes.answers[1] == "slow");
}

TEST_CASE("helpers that share a budget delay the loop no more than one helper does", "[reader]")
{
    WaitBudget waits;
    const auto echoes = [&] {
        return std::make_unique<Reader>(
            Reader::Service{.serve = echo, .apply = [](const Message&) { return true; }, .consequence = ""}, &waits);
    };
    const auto first = echoes(), second = echoes(), third = echoes();
    const auto waited = time_of([&] {
        for (const auto* each : {&first, &second, &third})
            for (const pid_t about : {getpid(), getppid()})
                CHECK_FALSE((*each)->ask(about, "slow"));
    });
    CHECK(waited < slow - 200ms);
}

TEST_CASE("a process with slow answers gets only part of the helper's time, so others get answers", "[reader][long]")
{
    EchoReader echoes;
    unsigned sent = 0;
    for (const auto begun = Clock::now(); Clock::now() - begun < 6s;) {
        sent += !echoes.reader.is_pending() && echoes.reader.post(getpid(), "slow");
        std::this_thread::sleep_for(20ms);
        echoes.reader.poll();
    }
    CHECK(sent >= 2);
    CHECK(sent <= 4);
    CHECK(echoes.reader.post(getppid(), "of another process"));
    CHECK(echoes.reader.wait_until(Clock::now() + 20s));
    CHECK(echoes.answers.back() == "of another process");
}

TEST_CASE("a process is blocked after the second crash of a helper", "[reader]")
{
    EchoReader echoes;
    CHECK_FALSE(echoes.reader.ask(getpid(), "die"));
    CHECK(echoes.restarts == 1);
    CHECK_FALSE(echoes.reader.is_blocked(getpid()));
    std::this_thread::sleep_for(1100ms); // restart interval of helpers
    CHECK(echoes.reader.ask(getpid(), "still there"));
    CHECK(echoes.warnings.empty());
    CHECK_FALSE(echoes.reader.ask(getpid(), "die"));
    CHECK(echoes.reader.is_blocked(getpid()));
    CHECK(echoes.warnings.find("item die (process " + std::to_string(getpid()) +
                               "): the helper that read it has died; it is not asked again") != std::string::npos);
    std::this_thread::sleep_for(1100ms);
    CHECK_FALSE(echoes.reader.ask(getpid(), "anything"));
    CHECK(echoes.reader.ask(getppid(), "of another process"));
}

TEST_CASE("an idle helper that exits is replaced at once, and no process is blamed", "[reader]")
{
    EchoReader echoes;
    CHECK(echoes.reader.ask(getpid(), "leave"));
    std::this_thread::sleep_for(1100ms);
    CHECK(echoes.reader.ask(getpid(), "leave"));
    std::this_thread::sleep_for(1100ms);
    CHECK(echoes.reader.ask(getpid(), "last"));
    CHECK(echoes.restarts == 2);
    CHECK(echoes.warnings.empty());
}

TEST_CASE("a user has at most 64 pending questions", "[reader]")
{
    EchoReader echoes;
    unsigned posted = 0;
    while (echoes.reader.post(getpid(), "slow"))
        posted++;
    CHECK(posted == 64);
    CHECK_FALSE(echoes.reader.ask(getppid(), "last")); // refused, or pending after the others
    CHECK(echoes.answers.empty());
}

TEST_CASE("a process that makes a helper hang is reported and blocked", "[reader]")
{
    EchoReader echoes;
    const auto took = time_of([&] {
        CHECK_FALSE(echoes.reader.ask(getpid(), "hang"));
        for (int i = 0; i < 100 && !echoes.reader.is_blocked(getpid()); i++) {
            std::this_thread::sleep_for(100ms);
            echoes.reader.poll();
        }
    });
    CHECK(took > 2s);
    CHECK(took < 6s);
    CHECK(echoes.warnings.find("item hang (process " + std::to_string(getpid()) +
                               "): it cannot be read within 3 s; it is not asked again") != std::string::npos);
    CHECK_FALSE(echoes.reader.ask(getpid(), "anything"));
    CHECK(echoes.reader.ask(getppid(), "of another process"));
}

TEST_CASE("a helper that sends an invalid answer is replaced", "[reader]")
{
    EchoReader echoes;
    CHECK_FALSE(echoes.reader.ask(0, "lie"));
    CHECK(echoes.warnings.find("item lie: the helper that read it sent an invalid answer") != std::string::npos);
    CHECK(echoes.restarts == 1);
    std::this_thread::sleep_for(1100ms);
    CHECK(echoes.reader.ask(0, "truth"));
}

TEST_CASE("another helper starts while one is slow, and each works on one question", "[reader]")
{
    // True once the slow helper may answer. It is in shared memory, because helpers are forked.
    std::atomic<bool>* const may_answer = static_cast<std::atomic<bool>*>(
        mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    REQUIRE(may_answer != MAP_FAILED);
    std::vector<std::string> answers;
    Clock::time_point now = Clock::now();
    Reader reader({.serve =
                       [may_answer](Helper::Task& task) {
                           while (const auto message = task.connection.receive()) {
                               while (message->bytes == "slow" && !*may_answer)
                                   std::this_thread::sleep_for(1ms);
                               task.connection.send(message->bytes);
                           }
                       },
                   .apply =
                       [&](const Message& message) {
                           answers.push_back(message.bytes);
                           *may_answer = true;
                           return true;
                       },
                   .clock = [&now] { return now; },
                   .hang_timeout = 1min,
                   .processes = 2,
                   .questions = 1});
    const auto first = reader.send(getpid(), "slow");
    REQUIRE(first);
    now += 49ms;
    CHECK_FALSE(reader.is_ready()); // the first helper may still answer quickly
    now += 1ms;
    const auto second = reader.send(getpid(), "quick");
    REQUIRE(second);
    CHECK(second->helper != first->helper);
    CHECK(second->question == first->question + 1);
    CHECK_FALSE(reader.post(getpid(), "third"));
    CHECK(reader.wait_until(Clock::now() + 20s));
    CHECK(answers == std::vector<std::string>{"quick", "slow"});
    munmap(may_answer, sizeof(std::atomic<bool>));
}

TEST_CASE("an answer may take several messages", "[reader]")
{
    const std::string whole(3 * Connection::message_max, 'x');
    JoinedParts parts(whole.size());
    std::string answer;
    Reader reader({.serve =
                       [&whole](Helper::Task& task) {
                           while (task.connection.receive())
                               send_in_parts(task.connection, whole);
                       },
                   .apply_part =
                       [&](const Reader::Part& part) {
                           const Reader::Reply reply = parts.add(part.message.bytes);
                           if (reply == Reader::Reply::complete)
                               answer = parts.extract();
                           return reply;
                       }});
    REQUIRE(reader.post(0, "?"));
    CHECK(reader.wait_until(Clock::now() + 20s));
    CHECK(answer == whole);
    JoinedParts small(10);
    CHECK(small.add("+12345") == Reader::Reply::partial);
    CHECK(small.add(".123456") == Reader::Reply::invalid);
}

TEST_CASE("if the reader blames no process, a helper that died three times in a row is restarted once a minute",
          "[reader]")
{
    Clock::time_point now = Clock::now();
    unsigned deaths = 0;
    Reader reader({.serve = echo,
                   .apply = [](const Message&) { return true; },
                   .lost =
                       [&deaths](const Reader::Loss& loss) {
                           deaths += loss.died;
                           return true;
                       },
                   .clock = [&now] { return now; },
                   .blames = false});
    for (unsigned death = 1; death <= 3; death++) {
        REQUIRE(reader.post(0, "die"));
        CHECK(reader.wait_until(Clock::now() + 20s));
        CHECK(deaths == death);
        CHECK(reader.consecutive_deaths() == death);
        now += 2s;
    }
    CHECK_FALSE(reader.is_ready());
    now += 59s;
    CHECK(reader.ask(0, "well"));
    now += 60s;
    CHECK(reader.ask(0, "well"));
    CHECK(reader.consecutive_deaths() == 0);
}
