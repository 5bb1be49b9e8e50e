// SPDX-License-Identifier: Apache-2.0
#include "script.hpp"

#include <cstdio>
#include <sstream>
#include <unistd.h>

namespace workload {
namespace {

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

Steps nest(std::vector<Step>& flat, size_t& next, const Step* owner, const Shapes& shapes)
{
    Steps out;
    while (next < flat.size()) {
        Step step = std::move(flat[next++]);
        if (step.name == "end") {
            if (!owner)
                wrong(step, "'end' without a block");
            return out;
        }
        const Shape* shape = shapes(step.name);
        if (!shape)
            wrong(step, "no such step");
        for (const auto& [key, value] : step.options)
            if (!listed(shape->options, key))
                wrong(step, "no such option: " + key);
        if (shape->block)
            step.body = nest(flat, next, &step, shapes);
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

Steps parse(std::string_view text, const Shapes& shapes)
{
    auto flat = split(text);
    size_t next = 0;
    return nest(flat, next, nullptr, shapes);
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
