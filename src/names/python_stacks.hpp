// SPDX-License-Identifier: Apache-2.0
// Python stacks that the BPF programs have stored by id, converted to named frames. A helper process finds the
// interpreters (code/python_interpreter.hpp).
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

struct PythonFrame {
    std::string function; // qualified name from Python 3.11 on
    std::string file;     // path as Python reports it; empty if unknown
    std::optional<int64_t> line;
    bool from_c = false; // true if native code runs between this frame and the next inner Python frame

    // Returns text such as "Model.forward (train.py:120)". The text is untrusted, so show it with printable().
    std::string text() const;
    // True unless the file is part of Python or of an installed package (site-packages or dist-packages).
    bool is_of_program() const;
};

class PythonStacks {
public:
    struct Fds {
        int pythons, stacks, codes; // the maps of bpf/base/python.bpf.h
    };
    // known: the BPF variable pythons_known. waits: see Reader.
    PythonStacks(const Fds& fds, volatile uint32_t& known, WaitBudget* waits = nullptr);

    // Searches the process once for an interpreter. If `wait` is set, waits for the result, within the wait budget.
    void track(pid_t pid, bool wait = false);
    // Applies answers that have arrived. To be called at least once a second.
    void tick() { reader_.poll(); }
    void learn(std::span<const uint8_t> record); // record: of type RECORD_PYTHON_CODE
    // To be called when the process has exited or called exec.
    void on_exit(pid_t pid);
    void forget(const ImageId& image);
    // Keeps these stacks and frees the table entries of all others. Returns the ids of the native stacks that belong to
    // the kept stacks.
    std::set<int32_t> keep(const std::set<int32_t>& stacks);

    static bool is_python(int32_t stack) { return stack >= 0 && stack & STACK_OF_PYTHON; }
    struct Stack {
        int32_t native = -1;             // id of the native stack; negative: none
        std::vector<PythonFrame> frames; // innermost first
        size_t left_out = 0;             // number of missing frames; the gap comes after the first `inner` frames
        size_t inner = 0;
        std::string remark; // explains why frames are missing; empty if none are
    };
    // Returns nullopt if the stack is unknown or no longer stored.
    std::optional<Stack> find(int32_t stack) const;
    // The role of a native code address.
    enum class Native : uint8_t {
        other,
        interpreter,
        loop, // the interpreter loop; the Python frames that it runs are shown instead
    };
    Native native(const ImageId& image, uint64_t address) const;

private:
    struct Process {
        uint64_t start_ns = 0;
        bool asked = false;
        PythonCodeRange code{}, loop{};
    };
    // Process, address of the code object, and a checksum of the object. The checksum is needed because addresses are
    // reused.
    using CodeKey = std::tuple<ImageId, uint64_t, uint64_t>;

    bool apply(const Message& message);
    void free_entries(const std::function<bool(int32_t number, const python_stack&)>& kept);
    PythonFrame frame(const python_stack& stack, const python_frame& frame) const;

    Fds fds_;
    volatile uint32_t& known_;
    std::map<pid_t, Process> processes_;
    std::map<CodeKey, PythonCode> codes_;
    Reader reader_;
};

} // namespace gpusnoop
