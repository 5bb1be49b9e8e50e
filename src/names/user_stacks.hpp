// SPDX-License-Identifier: Apache-2.0
// User stacks that the kernel side has stored by id, as printable frames. Python frames replace the interpreter's
// native frames. Native frames come from a copy of the stack or, if there is no copy, from frame pointers.
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

// Display options for stacks.
struct StackView {
    bool native = false;             // also show the interpreter's own frames
    uint32_t depth = 0;              // frames per stack; 0: all
    std::vector<std::string> skip{}; // globs of files that are not the program's own code
};

// The place in a program that made a call.
struct CodePlace {
    std::string function; // empty: unknown
    std::string file;
    std::optional<int64_t> line;
    auto operator<=>(const CodePlace&) const = default;
};

class UserStacks {
public:
    // Maps and variables of the kernel side; -1: there is no such map.
    struct Kernel {
        int stacks = -1;
        int window_stacks = -1;
        std::optional<PythonStacks::Fds> python{}; // nullopt: Python is not followed
        volatile uint32_t* pythons_known = nullptr;
        bool starts_in_probe = true; // stacks start in a probed function, whose caller is recorded separately
    };
    // To be called before the programs are loaded. stacks: size of the table of Python stacks, a power of two. If 0,
    // Python is not followed, and the table is not created.
    static void follow_python(const BpfObject& bpf, uint32_t stacks);
    // As follow_python(), for the table of native stacks, of which each is copied once.
    static void follow_windows(const BpfObject& bpf, uint32_t stacks);
    // To be called after loading. stacks: name of the map with the kernel's stack traces.
    static Kernel kernel_of(const BpfObject& bpf, const char* stacks);
    // True if the kernel has bpf_loop() (Linux 5.17).
    static bool can_follow_python();

    explicit UserStacks(const Kernel& kernel, StackView view = {}, WaitBudget* waits = nullptr); // waits: see Reader

    // Finds the Python interpreters of targets (-p) before their calls are traced, and waits for each result.
    void begin(std::span<const pid_t> targets);
    // Finds the interpreters of all running processes that may make traced calls. Other processes are tracked from
    // their first call on. wait: waits for the results, up to 50 ms in total.
    void track(const std::vector<pid_t>& running, bool wait);
    // record: a record in the ring buffer. Returns false if the caller must handle the record, too.
    bool learn(uint32_t type, std::span<const uint8_t> record);
    void tick();
    uint64_t mismatches_since_last() { return copies_.mismatches_since_last(); } // see CopiedStacks
    // To be called when the process has exited or called exec. Its stacks may still be shown.
    void on_exit(pid_t pid);
    void forget(const ImageId& image);
    // Forgets all other stacks. Returns the ids of native stacks that belong to `stacks` and must be kept, too.
    std::set<int32_t> keep(const std::set<int32_t>& stacks);

    // Looks up the names of a stack that a later report will show, because that works only while the process runs.
    void expect(const ImageId& image, int32_t stack);
    // Names can be looked up only while the process runs (see expect()).
    Frames frames(const ImageId& image, int32_t stack, uint64_t caller);
    Frames frames(const ImageId& image, std::span<const uint64_t> addresses);
    // The innermost Python frame in the program's own code, or else the native function that called CUDA.
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
