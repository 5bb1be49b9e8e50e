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

constexpr auto slow = 1s; // longer than the loop waits for helpers in all

// Says what it is told, but for a few words.
void echo(Helper::Task& task)
{
    while (const auto message = task.connection.receive()) {
        task.set_status("at " + message->bytes);
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
    unsigned restarts = 0;
    Reader reader{{.serve = echo,
                   .apply =
                       [this](const Message& message) {
                           answers.push_back(message.bytes);
                           return message.bytes != "lie";
                       },
                   .restarted = [this] { restarts++; },
                   .consequence = "it is not asked again"}};
};

std::chrono::milliseconds time_of(const std::function<void()>& what)
{
    const auto begun = std::chrono::steady_clock::now();
    what();
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
}

} // namespace

TEST_CASE("answers are taken in their order", "[reader]")
{
    Asked of;
    CHECK(of.reader.post(getpid(), "first"));
    CHECK(of.reader.post(0, "second"));
    CHECK(of.reader.ask(getpid(), "third"));
    CHECK(of.answers == std::vector<std::string>{"first", "second", "third"});
    CHECK(of.restarts == 0);
}

TEST_CASE("a caller waits for as long as the budget lasts, and a late answer is not lost", "[reader]")
{
    Asked of;
    CHECK(of.reader.ask(getpid(), "first"));
    const auto waited = time_of([&] {
        CHECK(of.reader.ask_or_post(getpid(), "slow") == Reader::Outcome::pending);
        for (int i = 0; i < 10; i++)
            CHECK_FALSE(of.reader.ask(getpid(), "behind it"));
    });
    CHECK(waited < slow - 200ms);
    CHECK(of.reader.is_pending());
    CHECK(of.reader.wait_until(std::chrono::steady_clock::now() + 20s));
    CHECK(of.answers.size() == 12);
    CHECK(of.answers[1] == "slow");
}

TEST_CASE("helpers that share a budget make the loop wait no longer than one", "[reader]")
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

TEST_CASE("a process with slow answers gets a part of the helper, and others their answers", "[reader]")
{
    Asked of;
    unsigned sent = 0;
    for (const auto begun = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - begun < 6s;) {
        sent += !of.reader.is_pending() && of.reader.post(getpid(), "slow");
        std::this_thread::sleep_for(20ms);
        of.reader.poll();
    }
    CHECK(sent >= 2);
    CHECK(sent <= 4);
    CHECK(of.reader.post(getppid(), "of another one"));
    CHECK(of.reader.wait_until(std::chrono::steady_clock::now() + 20s));
    CHECK(of.answers.back() == "of another one");
}

TEST_CASE("what a helper has died of twice is not asked about again", "[reader]")
{
    std::string said;
    const WarningRedirect here([&said](const std::string& text) { said += text; });
    Asked of;
    CHECK_FALSE(of.reader.ask(getpid(), "die"));
    CHECK(of.restarts == 1);
    CHECK_FALSE(of.reader.is_blocked(getpid()));
    std::this_thread::sleep_for(1100ms); // another one may begin
    CHECK(of.reader.ask(getpid(), "still there"));
    CHECK(said.empty());
    CHECK_FALSE(of.reader.ask(getpid(), "die"));
    CHECK(of.reader.is_blocked(getpid()));
    CHECK(said.find("at die (process " + std::to_string(getpid()) +
                    "): the helper that read it has died; it is not asked again") != std::string::npos);
    std::this_thread::sleep_for(1100ms);
    CHECK_FALSE(of.reader.ask(getpid(), "anything"));
    CHECK(of.reader.ask(getppid(), "of another one"));
}

TEST_CASE("a helper that ends while it has nothing to do is replaced at once, and nobody is blamed", "[reader]")
{
    std::string said;
    const WarningRedirect here([&said](const std::string& text) { said += text; });
    Asked of;
    CHECK(of.reader.ask(getpid(), "leave"));
    std::this_thread::sleep_for(1100ms);
    CHECK(of.reader.ask(getpid(), "leave"));
    std::this_thread::sleep_for(1100ms);
    CHECK(of.reader.ask(getpid(), "last"));
    CHECK(of.restarts == 2);
    CHECK(said.empty());
}

TEST_CASE("who posts too much is refused, and who asks is not", "[reader]")
{
    Asked of;
    unsigned posted = 0;
    while (of.reader.post(getpid(), "slow"))
        posted++;
    CHECK(posted == 64);
    CHECK_FALSE(of.reader.ask(getppid(), "last")); // it has to wait for the others
    CHECK(of.answers.empty());
}

TEST_CASE("what a helper hangs in is told, and not asked about again", "[reader]")
{
    std::string said;
    const WarningRedirect here([&said](const std::string& text) { said += text; });
    Asked of;
    const auto took = time_of([&] {
        CHECK_FALSE(of.reader.ask(getpid(), "hang"));
        for (int i = 0; i < 100 && !of.reader.is_blocked(getpid()); i++) {
            std::this_thread::sleep_for(100ms);
            of.reader.poll();
        }
    });
    CHECK(took > 2s);
    CHECK(took < 6s);
    CHECK(said.find("at hang (process " + std::to_string(getpid()) +
                    "): it cannot be read within 3 s; it is not asked again") != std::string::npos);
    CHECK_FALSE(of.reader.ask(getpid(), "anything"));
    CHECK(of.reader.ask(getppid(), "of another one"));
}

TEST_CASE("a helper that says what cannot be is replaced", "[reader]")
{
    std::string said;
    const WarningRedirect here([&said](const std::string& text) { said += text; });
    Asked of;
    CHECK_FALSE(of.reader.ask(0, "lie"));
    CHECK(said.find("at lie: the helper that read it sent an invalid answer") != std::string::npos);
    CHECK(of.restarts == 1);
    std::this_thread::sleep_for(1100ms);
    CHECK(of.reader.ask(0, "truth"));
}

TEST_CASE("another helper starts while one is slow, and each works on one question", "[reader]")
{
    // Shared with the helpers, which are forks: set once the slow one may answer.
    std::atomic<bool>* const may_answer = static_cast<std::atomic<bool>*>(
        mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    REQUIRE(may_answer != MAP_FAILED);
    std::vector<std::string> answers;
    Reader::Clock::time_point now = Reader::Clock::now();
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
    CHECK_FALSE(reader.is_ready()); // it may be quick
    now += 1ms;
    const auto second = reader.send(getpid(), "quick");
    REQUIRE(second);
    CHECK(second->helper != first->helper);
    CHECK(second->question == first->question + 1);
    CHECK_FALSE(reader.post(getpid(), "third"));
    CHECK(reader.wait_until(std::chrono::steady_clock::now() + 20s));
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
    CHECK(reader.wait_until(std::chrono::steady_clock::now() + 20s));
    CHECK(answer == whole);
    JoinedParts little(10);
    CHECK(little.add("+12345") == Reader::Reply::partial);
    CHECK(little.add(".123456") == Reader::Reply::invalid);
}

TEST_CASE("a helper whose deaths have no culprit is started once a minute after three in a row", "[reader]")
{
    Reader::Clock::time_point now = Reader::Clock::now();
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
    for (unsigned turn = 1; turn <= 3; turn++) {
        REQUIRE(reader.post(0, "die"));
        CHECK(reader.wait_until(Reader::Clock::now() + 20s));
        CHECK(deaths == turn);
        CHECK(reader.consecutive_deaths() == turn);
        now += 2s;
    }
    CHECK_FALSE(reader.is_ready());
    now += 59s;
    CHECK(reader.ask(0, "well"));
    now += 60s;
    CHECK(reader.ask(0, "well"));
    CHECK(reader.consecutive_deaths() == 0);
}
