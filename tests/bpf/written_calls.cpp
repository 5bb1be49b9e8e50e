// SPDX-License-Identifier: Apache-2.0
#include "tests/bpf/written_calls.hpp"

#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace gpusnoop {
namespace {

argument argument_called(std::string_view name)
{
    for (int which = 0; which < ARGUMENTS; which++)
        if (abi::argument_name(which) == name)
            return static_cast<argument>(which);
    throw std::invalid_argument(std::string(name));
}

void make_call(FakeRun& run, std::span<const std::string> words)
{
    if (words[0] == "thread")
        return std::thread([&] { make_call(run, words.subspan(1)); }).join();
    if (words[0].ends_with('*')) {
        for (int i = 0; i < std::stoi(words[0]); i++)
            make_call(run, words.subspan(1));
        return;
    }
    const bool enters = words[0] == "enter";
    const WrittenCall call = parse_call(run, words.subspan(enters ? 1 : 0));
    if (enters)
        run.enter(call.function, call.arguments);
    else if (call.function == "leave")
        run.leave(call.result);
    else if (call.function == "see-from-start")
        run.see_from_start();
    else
        run.call(call.function, call.arguments, call.result);
}

} // namespace

std::vector<std::string> words_of(std::string_view text)
{
    std::istringstream stream{std::string(text)};
    return {std::istream_iterator<std::string>(stream), {}};
}

WrittenCall parse_call(FakeRun& run, std::span<const std::string> words)
{
    WrittenCall call{words[0]};
    for (const std::string& word : words.subspan(1)) {
        const std::string name = word.substr(0, word.find('='));
        const bool is_stored = name == "out" || name == "pitch";
        const bool is_hex = is_stored || name == "address" || name == "handle";
        const uint64_t value = std::stoull(word.substr(name.size() + 1), nullptr, is_hex ? 16 : 10);
        if (name.empty())
            call.result = value;
        else
            call.arguments[argument_called(name)] = is_stored ? reinterpret_cast<uint64_t>(run.memory({value})) : value;
    }
    return call;
}

void make_calls(FakeRun& run, std::string_view calls)
{
    std::istringstream stream{std::string(calls)};
    for (std::string call; std::getline(stream, call, ';');)
        if (const std::vector<std::string> words = words_of(call); !words.empty())
            make_call(run, words);
}

} // namespace gpusnoop
