// SPDX-License-Identifier: Apache-2.0
// User stacks that the BPF programs have stored by id, converted to printable frames. Python frames replace the
// interpreter's native frames. Native frames come from a copy of the stack or, if there is no copy, from frame
// pointers.
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
    uint32_t depth = 0;              // maximum number of frames per stack; 0: all
    std::vector<std::string> skip{}; // globs for files that do not count as the program's own code
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
    // Map descriptors (-1 if the map does not exist) and variables of the BPF object.
    struct Kernel {
        int stacks = -1;
        int window_stacks = -1;
        std::optional<PythonStacks::Fds> python{}; // nullopt if Python frames are not recorded
        volatile uint32_t* pythons_known = nullptr;
        bool starts_in_probe = true; // true if stacks start in a probed function; the caller of that function is then
                                     // recorded separately
    };
    // Enables the recording of Python frames. Call this before loading the programs. stacks: size of the table of
    // Python stacks, a power of two. If it is 0, Python frames are not recorded, and the table is not created.
    static void follow_python(const BpfObject& bpf, uint32_t stacks);
    // Enables a faster way to read native stacks: one read of a block of the stack per call (bpf/base/window.bpf.h).
    // Call this before loading the programs. stacks: size of the table of these stacks, a power of two; 0: off.
    static void follow_windows(const BpfObject& bpf, uint32_t stacks);
    // Returns the maps and variables of a loaded BPF object. stacks: name of the map of stack traces.
    static Kernel kernel_of(const BpfObject& bpf, const char* stacks);
    // True if the kernel has bpf_loop() (Linux 5.17).
    static bool can_follow_python();

    explicit UserStacks(const Kernel& kernel, StackView view = {}, WaitBudget* waits = nullptr); // waits: see Reader

    // Finds the Python interpreters of the target processes (-p) before their calls are traced, and waits for the
    // results.
    void begin(std::span<const pid_t> targets);
    // Finds the interpreters of all running processes that may make traced calls. Processes that start later are
    // tracked from their first call on. wait: wait for the results, at most 50 ms in total.
    void track(const std::vector<pid_t>& running, bool wait);
    // record: a record from the ring buffer. Returns false if the caller must also handle the record.
    bool learn(uint32_t type, std::span<const uint8_t> record);
    void tick();
    uint64_t mismatches_since_last() { return copies_.mismatches_since_last(); } // see CopiedStacks
    // To be called when the process has exited or called exec. Its stacks may still be shown.
    void on_exit(pid_t pid);
    void forget(const ImageId& image);
    // Keeps these stacks and forgets all others. Returns the ids of the native stacks that belong to the kept stacks,
    // and that must also be kept.
    std::set<int32_t> keep(const std::set<int32_t>& stacks);

    // Looks up the names in a stack now, for a later report, because the lookup works only while the process runs.
    void expect(const ImageId& image, int32_t stack);
    // These functions look up names, which works only while the process runs (see expect()).
    Frames frames(const ImageId& image, int32_t stack, uint64_t caller);
    Frames frames(const ImageId& image, std::span<const uint64_t> addresses);
    // Returns the innermost Python frame in the program's own code, or else the native function that called CUDA.
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
