// SPDX-License-Identifier: Apache-2.0
#include "tests/bpf/graph_script.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>
#include <stdexcept>

namespace gpusnoop {
namespace {

struct Verb {
    std::string_view name, function;
    std::string_view operands; // o: a new handle; g, c: graphs; x: executable graph; e: event; s, n: stream;
                               // k: kind of node; f: function with its prefix
    bool frees = false;        // the first operand's handle is free after the call
};

constexpr Verb verbs[] = {
    {"create", "GraphCreate", "o"},
    {"clone", "GraphClone", "go"},
    {"add", "", "gk"},
    {"instantiate", "GraphInstantiateWithFlags", "go"},
    {"launch", "GraphLaunch", "x"},
    {"upload", "GraphUpload", "x"},
    {"set", "GraphExecKernelNodeSetParams", "x"},
    {"update", "GraphExecUpdate", "xg"},
    {"destroy", "GraphDestroy", "g", true},
    {"drop", "GraphExecDestroy", "x", true},
    {"begin", "StreamBeginCapture", "s"},
    {"end", "StreamEndCapture", "so"},
    {"new-stream", "StreamCreate", "n"},
    {"drop-stream", "StreamDestroy", "s"},
    {"record", "EventRecord", "es"},
    {"wait", "StreamWaitEvent", "es"},
    {"drop-event", "EventDestroy", "e"},
    {"kernel", "LaunchKernel", ""},
    {"host", "LaunchHostFunc", ""},
    {"call", "", "f"},
    {"old", "", "o"}, // no call: the object was made before tracing
};

using Names = std::pair<std::string_view, std::string_view>;
constexpr Names node_functions[] = {
    {"kernel", "GraphAddKernelNode"}, {"memcpy", "GraphAddMemcpyNode"}, {"memset", "GraphAddMemsetNode"},
    {"host", "GraphAddHostNode"},     {"empty", "GraphAddEmptyNode"},   {"child", "GraphAddChildGraphNode"},
    {"node", "GraphAddNode"},
};

std::vector<std::string> split(std::string_view text, char separator)
{
    std::vector<std::string> parts;
    std::istringstream stream{std::string(text)};
    for (std::string part; std::getline(stream, part, separator);)
        if (part.find_first_not_of(" \n") != std::string::npos)
            parts.push_back(part);
    return parts;
}

} // namespace

void GraphScript::play(std::string_view steps)
{
    for (const std::string& step : split(steps, ';'))
        play_step(step);
}

std::string GraphScript::name(const json& handle) const
{
    if (handle.is_null())
        return "-";
    for (const auto& [name, value] : handles_)
        if (fmt::format("{:#x}", value) == handle)
            return name;
    return handle;
}

void GraphScript::call(const std::string& function, const Arguments& arguments, uint64_t result)
{
    const bool only_in_driver = function.starts_with("Event") ||
                                (function.starts_with("Stream") && function.find("Capture") == std::string::npos);
    if (prefix_ != "cuda" || only_in_driver)
        return run_.call((prefix_ == "cuda" ? "cu" : prefix_) + function, arguments, result);
    run_.enter(prefix_ + function, arguments);
    run_.call("cu" + function, arguments, result);
    run_.leave(result);
}

uint64_t GraphScript::address_of(uint64_t word)
{
    return reinterpret_cast<uint64_t>(run_.memory({word}));
}

uint64_t GraphScript::new_handle()
{
    if (freed_.empty())
        return last_ += 16;
    const uint64_t handle = freed_.back();
    freed_.pop_back();
    return handle;
}

void GraphScript::play_step(const std::string& step)
{
    std::istringstream stream(step);
    std::vector<std::string> words;
    std::map<std::string, std::string> options;
    for (std::string word; stream >> word;)
        if (const size_t at = word.find('='); at != std::string::npos)
            options[word.substr(0, at)] = word.substr(at + 1);
        else
            words.push_back(word);
    const auto verb = std::ranges::find(verbs, words.at(0), &Verb::name);
    if (verb == std::end(verbs))
        throw std::invalid_argument(step);
    const auto number = [&](const char* option) {
        return options.contains(option) ? std::stoull(options.at(option)) : 0;
    };
    const uint64_t result = number("result");
    const size_t operands = verb->operands.size();
    const uint64_t count = words.size() > operands + 1 ? std::stoull(words[operands + 1]) : 1;
    for (uint64_t i = 0; i < count; i++) {
        std::string function(verb->function);
        Arguments arguments;
        if (options.contains("on"))
            arguments[ARG_STREAM] = number("on");
        if (options.contains("of"))
            arguments[ARG_CHILD] = handle(options.at("of"));
        if (options.contains("type"))
            arguments[ARG_NODE_TYPE] = number("type");
        if (options.contains("to")) {
            arguments[ARG_GRAPH] = handle(options.at("to"));
            function += "ToGraph";
        }
        if (verb->name == "update")
            arguments[ARG_OUT] = address_of(number("reason"));
        std::string made;
        for (size_t operand = 0; operand < operands; operand++) {
            const std::string& word = words.at(operand + 1);
            const char kind = verb->operands[operand];
            if (kind == 'o')
                made = word;
            else if (kind == 'g' || kind == 'x')
                arguments[kind == 'g' ? ARG_GRAPH : ARG_FUNC] = handle(word);
            else if (kind == 's')
                arguments[ARG_STREAM] = std::stoull(word);
            else if (kind == 'n')
                arguments[ARG_OUT] = address_of(std::stoull(word));
            else if (kind == 'e')
                arguments[ARG_HANDLE] = 0xe000 + static_cast<uint64_t>(word[0]);
            else if (kind == 'k')
                function = std::ranges::find(node_functions, word, &Names::first)->second;
        }
        if (!made.empty()) {
            const uint64_t value = result ? 0 : options.contains("is") ? handle(options.at("is")) : new_handle();
            arguments[ARG_OUT] = address_of(value);
            if (!result && !options.contains("is"))
                std::erase_if(handles_, [&](const auto& named) { return named.second == value; });
            if (!result)
                handles_[made] = value;
        }
        if (options.contains("fn"))
            function = options.at("fn");
        if (verb->name == "call")
            run_.call(words[1], arguments, result);
        else if (verb->name != "old")
            call(function, arguments, result);
        if (verb->frees && !result)
            freed_.push_back(handle(words.at(1)));
    }
}

} // namespace gpusnoop
