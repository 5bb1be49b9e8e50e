// SPDX-License-Identifier: Apache-2.0
#include "code/python_search.hpp"

#include "base/error.hpp"
#include "code/python_interpreter.hpp"
#include "code/python_messages.hpp"
#include "reader/reader.hpp"

#include <fmt/format.h>
#include <new>

namespace gpusnoop {
namespace {

constexpr uint64_t memory_bytes = 64 << 20;

PythonInterpreter look(pid_t pid)
{
    try {
        return find_interpreter(pid);
    } catch (const std::bad_alloc&) {
        return {.refused = "its files are too large"};
    } catch (const Error& e) {
        return {.refused = e.what()};
    }
}

} // namespace

void serve_python_search(Helper::Task& task)
{
    confine_reader(memory_bytes);
    while (const auto message = task.connection.receive()) {
        const auto question = read_message<PythonQuestion>(message->bytes);
        if (!question)
            return;
        task.says(fmt::format("the Python interpreter of process {}", question->pid));
        const PythonInterpreter found = look(static_cast<pid_t>(question->pid));
        PythonAnswer answer{.pid = question->pid,
                            .code_start = found.code.start,
                            .code_end = found.code.end,
                            .loop_start = found.loop.start,
                            .loop_end = found.loop.end,
                            .refused = found.refused};
        if (found.layout)
            answer.layout.assign(reinterpret_cast<const char*>(&*found.layout), sizeof(*found.layout));
        if (!task.connection.send(message_of(answer)))
            return;
    }
}

} // namespace gpusnoop
