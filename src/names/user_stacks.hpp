// SPDX-License-Identifier: Apache-2.0
// User stacks that the kernel side has kept by a number, as people read them. Where Python runs, its frames stand in
// the place of its interpreter; native frames are what a copy of the stack says or, where there is none, what frame
// pointers lead to.
#pragma once

#include "base/bpf_object.hpp"
#include "bpf/shared/stack.h"
#include "names/copied_stacks.hpp"
#include "names/frames.hpp"
#include "names/python_stacks.hpp"
#include "names/stack_names.hpp"
#include "proc/mapped_file.hpp"

#include <algorithm>
#include <bpf/libbpf.h>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace gpusnoop {

// How stacks are shown.
struct StackView {
    bool native = false;             // the interpreter's own frames, too
    uint32_t depth = 0;              // so many frames; 0: all
    std::vector<std::string> skip{}; // globs of files, which are not the program's own
};

// Where in a program a call comes from.
struct CodePlace {
    std::string function; // empty: not known
    std::string file;
    std::optional<int64_t> line;
    auto operator<=>(const CodePlace&) const = default;
};

class UserStacks {
public:
    // What the kernel side has; -1: it has no such map.
    struct Kernel {
        int stacks = -1;
        int window_stacks = -1;
        std::optional<PythonStacks::Fds> python{}; // none: it does not follow Python
        volatile uint32_t* pythons_known = nullptr;
        bool of_functions = true; // stacks begin in a probed function, whose caller is known by itself
    };
    // Of any tool's object, before its programs are loaded: room for so many stacks with Python, a power of two; 0:
    // Python is not followed, and there is no such table.
    static void follow_python(const BpfObject& bpf, uint32_t stacks);
    // The same of native stacks, of which each is copied once.
    static void follow_windows(const BpfObject& bpf, uint32_t stacks);
    // After. stacks: the name of the table of native ones.
    static Kernel kernel_of(const BpfObject& bpf, const char* stacks);
    // The kernel can do so (bpf_loop(), 5.17).
    static bool can_follow_python();

    explicit UserStacks(const Kernel& kernel, StackView view = {}, WaitBudget* waits = nullptr); // waits: see Reader

    // Of processes that were named, all calls are to have their frames, and of those that can call by now; of others it
    // is known once they have called.
    void begin(std::span<const pid_t> named);
    void track(const std::vector<pid_t>& there, bool wait);
    // A record from the ring; false where others are to have it, too.
    bool learn(uint32_t type, std::span<const uint8_t> record);
    void tick();
    uint64_t mismatches_since_last() { return copies_.mismatches_since_last(); } // see CopiedStacks
    void on_exit(pid_t pid); // it is another program, or none; its stacks may still be shown
    void forget(const ImageId& image);
    // All others may be forgotten. Returns the native stacks that these are made of, which are to be kept, too.
    std::set<int32_t> keep(const std::set<int32_t>& stacks);

    // It will be shown: its names are asked for while the process lives.
    void expect(const ImageId& image, int32_t stack);
    // Names are asked for while the process lives: once when a stack is seen, and again when it is shown.
    Frames frames(const ImageId& image, int32_t stack, uint64_t caller);
    Frames frames(const ImageId& image, std::span<const uint64_t> addresses);
    // The innermost frame of Python that is the program's own; else the function that has called into CUDA.
    CodePlace place(const ImageId& image, int32_t stack, uint64_t caller);

private:
    std::vector<uint64_t> by_frame_pointers(int32_t stack, uint64_t caller) const;
    void free_windows(const std::function<bool(int32_t stack)>& kept) const;
    Frames with_python(const ImageId& image, const PythonStacks::Stack& stack, std::span<const uint64_t> native);
    bool is_of_program(const PythonFrame& frame) const;
    void cut(Frames& frames) const;

    Kernel kernel_;
    StackView view_;
    StackNames names_;
    CopiedStacks copies_;
    std::optional<PythonStacks> python_;
    std::set<std::pair<ImageId, int32_t>> expected_;
};

} // namespace gpusnoop
