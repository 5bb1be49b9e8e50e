// SPDX-License-Identifier: Apache-2.0
#include "script.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/prctl.h>
#include <unistd.h>

namespace workload {
namespace {

volatile sig_atomic_t stop_signal;

double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void repeat(const Step& step)
{
    for (uint64_t i = 0, n = step.number(0); i < n && !stopping(); i++)
        run(step.body);
}

void loop(const Step& step)
{
    for (double end = now() + static_cast<double>(step.number(0)); now() < end && !stopping();)
        run(step.body);
}

void forever(const Step& step)
{
    while (!stopping())
        run(step.body);
}

void wait_for(const Step& step)
{
    while (!stopping() && access(step.word(0).c_str(), F_OK))
        sleep_ms(1);
}

void touch(const Step& step)
{
    int fd = open(step.word(0).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        fail("cannot create " + step.word(0));
    close(fd);
}

const StepRow common[] = {
    {"repeat", repeat, "", with_block},
    {"loop", loop, "", with_block},
    {"forever", forever, "", with_block},
    {"sleep", [](const Step& step) { sleep_ms(step.number(0)); }},
    {"wait", wait_for},
    {"touch", touch},
    {"name", [](const Step& step) { prctl(PR_SET_NAME, unescaped(step.word(0)).c_str()); }},
};

const StepRow& row_of(const Step& step, std::span<const StepRow> rows)
{
    for (auto list : {rows, std::span<const StepRow>(common)})
        if (auto row = std::ranges::find(list, step.name, &StepRow::name); row != list.end())
            return *row;
    wrong(step, "no such step");
}

std::string read_file(const char* path)
{
    std::ifstream in(path);
    std::ostringstream text;
    if (!in || !(text << in.rdbuf()))
        fail(std::string("cannot read ") + path);
    return text.str();
}

bool listed(std::string_view list, const std::string& key)
{
    return (" " + std::string(list) + " ").find(" " + key + " ") != std::string::npos;
}

Step to_step(const std::string& text, int line)
{
    Step step;
    step.line = line;
    step.text = text;
    std::istringstream in(text);
    in >> step.name;
    for (std::string token; in >> token;) {
        auto equals = token.find('=');
        if (equals == std::string::npos || equals == 0)
            step.words.push_back(token);
        else
            step.options[token.substr(0, equals)] = token.substr(equals + 1);
    }
    return step;
}

// Splits a script into steps with line numbers, without comments and blank lines.
std::vector<Step> split(std::string_view text)
{
    std::vector<Step> out;
    int line = 0;
    std::istringstream lines{std::string(text)};
    for (std::string whole; std::getline(lines, whole);) {
        line++;
        std::istringstream statements(whole.substr(0, whole.find('#')));
        for (std::string statement; std::getline(statements, statement, ';');) {
            Step step = to_step(statement, line);
            if (!step.name.empty())
                out.push_back(std::move(step));
        }
    }
    return out;
}

Steps nest(std::vector<Step>& flat, size_t& next, const Step* owner, std::span<const StepRow> rows)
{
    Steps out;
    while (next < flat.size()) {
        Step step = std::move(flat[next++]);
        if (step.name == "end") {
            if (!owner)
                wrong(step, "'end' without a block");
            return out;
        }
        const StepRow& row = row_of(step, rows);
        step.run = row.run;
        for (const auto& [key, value] : step.options)
            if (!listed(row.options, key))
                wrong(step, "no such option: " + key);
        if (row.block)
            step.body = nest(flat, next, &step, rows);
        out.push_back(std::move(step));
    }
    if (owner)
        wrong(*owner, "'end' is missing");
    return out;
}

} // namespace

uint64_t to_number(const Step& step, std::string text)
{
    std::erase(text, '_'); // 1_000_003
    size_t used = 0;
    uint64_t value = 0;
    try {
        value = std::stoull(text, &used, 0);
    } catch (const std::exception&) {}
    if (text.empty() || used != text.size())
        wrong(step, "'" + text + "' is not a number");
    return value;
}

std::string Step::word(size_t index) const
{
    if (index >= words.size())
        wrong(*this, "word " + std::to_string(index + 1) + " is missing");
    return words[index];
}

std::string Step::word(size_t index, const std::string& fallback) const
{
    return index < words.size() ? words[index] : fallback;
}

uint64_t Step::number(size_t index) const
{
    return to_number(*this, word(index));
}

std::string Step::option(const std::string& key, const std::string& fallback) const
{
    auto found = options.find(key);
    return found == options.end() ? fallback : found->second;
}

uint64_t Step::number(const std::string& key, uint64_t fallback) const
{
    auto found = options.find(key);
    return found == options.end() ? fallback : to_number(*this, found->second);
}

standin::Dim3 Step::triple(const std::string& key) const
{
    unsigned values[3] = {1, 1, 1};
    std::istringstream in(option(key, "1"));
    int n = 0;
    for (std::string part; std::getline(in, part, ',');) {
        if (n == 3)
            wrong(*this, key + " takes up to three numbers");
        values[n++] = static_cast<unsigned>(to_number(*this, part));
    }
    return {values[0], values[1], values[2]};
}

Steps parse(std::string_view text, std::span<const StepRow> rows)
{
    auto flat = split(text);
    size_t next = 0;
    return nest(flat, next, nullptr, rows);
}

void run(const Steps& steps)
{
    for (const Step& step : steps) {
        if (stopping())
            return;
        step.run(step);
    }
}

Arguments arguments(int argc, char** argv)
{
    Arguments out;
    for (int i = 1; i < argc; i++) {
        std::string_view word = argv[i];
        bool more = i + 1 < argc;
        if (word == "--truth" && more)
            out.truth = argv[++i];
        else if (word == "-f" && more)
            out.script += read_file(argv[++i]) + "\n";
        else if (word == "--append")
            out.append = true;
        else if (word == "--banner")
            out.banner = true;
        else if (word.starts_with('-')) {
            fprintf(stderr, "usage: %s [--truth FILE] (SCRIPT | -f FILE)\n", argv[0]);
            exit(2);
        } else
            out.script += std::string(word) + "\n";
    }
    return out;
}

bool stopping()
{
    return stop_signal;
}

void stop_on_signals(int flags)
{
    struct sigaction action = {};
    action.sa_handler = [](int) { stop_signal = 1; };
    action.sa_flags = flags;
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
}

void sleep_ms(uint64_t ms)
{
    timespec t = {static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000 * 1'000'000)};
    while (nanosleep(&t, &t) && errno == EINTR && !stopping())
        ;
}

std::string render(const Steps& steps)
{
    std::string out;
    for (const Step& step : steps) {
        out += step.text + "\n";
        if (!step.body.empty())
            out += render(step.body) + "end\n";
    }
    return out;
}

std::string unescaped(const std::string& s)
{
    std::string out;
    for (size_t i = 0; i < s.size(); i++) {
        if (s[i] != '\\' || i + 1 == s.size()) {
            out += s[i];
            continue;
        }
        char c = s[++i];
        if (c == 'x') {
            out += static_cast<char>(strtol(s.substr(i + 1, 2).c_str(), nullptr, 16));
            i += 2;
        } else
            out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 's' ? ' ' : c;
    }
    return out;
}

void wrong(const Step& step, const std::string& message)
{
    fprintf(stderr, "workload: line %d: %s: %s\n", step.line, step.text.c_str(), message.c_str());
    _exit(2);
}

void fail(const std::string& message)
{
    fprintf(stderr, "workload: %s\n", message.c_str());
    _exit(1);
}

void skip(const std::string& message)
{
    fprintf(stderr, "workload: skipped: %s\n", message.c_str());
    _exit(77);
}

} // namespace workload
