// SPDX-License-Identifier: Apache-2.0
// Stacks with Python in them, as the kernel side has kept them by a number: which processes have an interpreter, what
// the code in their stacks is called, and the frames in turn. Who looks for interpreters is a helper
// (code/python_interpreter.hpp).
#pragma once

#include "bpf/shared/python.h"
#include "code/python_code.hpp"
#include "code/python_interpreter.hpp"
#include "proc/mapped_file.hpp"
#include "reader/reader.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <tuple>
#include <vector>

namespace gpusnoop {

// One frame of Python.
struct PythonFrame {
    std::string function; // qualified from 3.11 on
    std::string file;     // as Python has it; empty: not known
    std::optional<int64_t> line;
    bool from_c = false; // there is native code between it and the frame inside it

    // "Model.forward (train.py:120)". To be shown with printable().
    std::string text() const;
    // Not of a library: its file is in no site-packages, no dist-packages, and not Python's own.
    bool is_of_program() const;
};

class PythonStacks {
public:
    struct Fds {
        int pythons, stacks, codes; // the maps of bpf/base/python.bpf.h
    };
    // known: the variable of the BPF programs.
    PythonStacks(const Fds& fds, volatile uint32_t& known, WaitBudget* waits = nullptr); // waits: see Reader

    // A process that may have an interpreter: it is looked for once. With wait, until that is known, or took too long.
    void track(pid_t pid, bool wait = false);
    // Now and then: takes what has come.
    void tick() { reader_.poll(); }
    void learn(std::span<const uint8_t> record); // RECORD_PYTHON_CODE
    // It is another program, or none.
    void on_exit(pid_t pid);
    void forget(const ImageId& image);
    // Gives back the places of all others; returns the native stacks of those that stay.
    std::set<int32_t> keep(const std::set<int32_t>& stacks);

    static bool is(int32_t stack) { return stack >= 0 && stack & STACK_OF_PYTHON; }
    struct Stack {
        int32_t native = -1;
        std::vector<PythonFrame> frames; // innermost first
        size_t left_out = 0;             // frames behind the first `inner`
        size_t inner = 0;
        std::string remark; // why there are no frames, or no more
    };
    // nullopt where it is not known (any more).
    std::optional<Stack> of(int32_t stack) const;
    // What an address of native code is.
    enum class Native : uint8_t {
        other,
        interpreter,
        loop, // the function that runs Python: in its place its program's frames stand
    };
    Native native(const ImageId& image, uint64_t address) const;

private:
    struct Process {
        uint64_t start_ns = 0;
        bool asked = false;
        PythonCodeRange code{}, loop{};
    };
    using CodeKey = std::tuple<ImageId, uint64_t, uint64_t>; // address, and what tells it from others there

    bool apply(const Message& message);
    void free_places(const std::function<bool(int32_t number, const python_stack&)>& kept);
    PythonFrame frame(const python_stack& stack, const python_frame& frame) const;

    Fds fds_;
    volatile uint32_t& known_;
    std::map<pid_t, Process> processes_;
    std::map<CodeKey, PythonCode> codes_;
    Reader reader_;
};

} // namespace gpusnoop
