// SPDX-License-Identifier: Apache-2.0
// A tool that runs without probes: the tool's BPF programs run in this process, with registers and memory that the test
// provides. Everything else is real: options, the programs' code, maps, and the report.
#pragma once

#include "attach/links.hpp"
#include "attach/programs.hpp"
#include "base/bpf_map.hpp"
#include "base/ending_signals.hpp"
#include "base/loop.hpp"
#include "run/report_notes.hpp"
#include "run/ring.hpp"
#include "run/tool.hpp"
#include "tests/bpf/fake.bpf.h"
#include "tests/unit/attach/abi/calls.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace gpusnoop {

using nlohmann::json;

// Values of a call's arguments. An argument that the function does not have is an error.
using Arguments = std::map<argument, uint64_t>;

class FakeRun {
public:
    // words: a command line, such as "cudalaunch --by kernel". entries: capacities of BPF maps, to test full maps.
    // Throws Error or UsageError.
    explicit FakeRun(const std::string& words, const std::map<std::string, uint32_t>& entries = {});
    FakeRun(const FakeRun&) = delete;
    FakeRun& operator=(const FakeRun&) = delete;
    ~FakeRun();

    // Runs the programs that are attached to the entry of this function; there may be none. The caller's thread makes
    // the call, inside the calls that it has entered before.
    void enter(std::string_view symbol, const Arguments& arguments = {});
    // Like enter(), with the registers and memory of a compiled call. `compiled` must outlive the call.
    void enter(const Probe& probe, const abi::Call& compiled);
    // Runs the programs that are attached to the return of the innermost call.
    void leave(uint64_t result = 0);
    // Leaves the innermost call without a return, as longjmp() does.
    void jump_out();
    void call(std::string_view symbol, const Arguments& arguments = {}, uint64_t result = 0);
    void call(const Probe& probe, const abi::Call& compiled, uint64_t result = 0);
    // Runs return programs for a function whose entry was not seen.
    void leave_unseen(std::string_view symbol, uint64_t result = 0);

    // A block of memory for arguments, which exists as long as this object. Addresses do not repeat.
    uint64_t* memory(std::initializer_list<uint64_t> words);
    uint64_t text(std::string_view string);
    // An address at which nothing is mapped.
    static constexpr uint64_t unreadable = 0x7fff'0000'0000;
    // Makes the memory block with the next call's arguments unreadable, unless it is on the stack.
    void break_memory() { block_is_broken_ = true; }

    // Prints a report. Returns its rows or, with -e, its lines or, with -H, its histograms.
    std::vector<json> report();
    std::string report_in_text();
    // Events that were lost since the last call of this function, by their names in JSON.
    std::map<std::string, uint64_t> losses();

    std::span<const Probe> probes() const { return plan_.probes; }
    // Returns true if programs are attached to this function.
    bool handles(std::string_view symbol) const;
    Tool& tool() { return *tool_; }
    fake_hit& hit() { return *hit_; } // for what a probe sees beside registers: the id of a stack
    // Makes all processes count as started after tracing began.
    void see_from_start() { *tool_->opened().switches.traced_since = 1; }
    // The version whose rows of the probe table apply to later calls.
    void set_runtime(Runtime runtime) { runtime_ = runtime; }
    // The word that attaching derives from the probed file, as in identity_word().
    void set_file_word(uint32_t word) { file_word_ = word; }

private:
    struct Frame {
        std::optional<size_t> probe; // nullopt: the tool has no probe on the function
        uint64_t sp, return_address;
    };
    struct Stack {
        std::unique_ptr<std::vector<uint64_t>> words;
        std::vector<Frame> frames;
    };

    std::optional<size_t> index_of(std::string_view symbol) const;
    Stack& stack();
    uint64_t push(std::optional<size_t> probe);
    void run(std::optional<size_t> probe, std::string_view suffix);
    void print(Output& output);

    EndingSignals signals_;
    std::optional<Loop> loop_;
    std::unique_ptr<Tool> tool_;
    RunPlan run_plan_;
    ProbePlan plan_;
    std::unique_ptr<SharedArray<fake_hit>> hit_map_;
    fake_hit* hit_ = nullptr; // in hit_map_
    std::optional<Losses> losses_;
    std::optional<Ring> ring_;
    Output* output_ = nullptr; // set while a report is printed
    Runtime runtime_ = any_runtime;
    uint32_t file_word_ = 0;
    bool block_is_broken_ = false;
    std::map<std::thread::id, Stack> stacks_;
    std::deque<std::vector<uint64_t>> memory_;
    std::deque<std::string> texts_;
};

// A run that test cases with the same command line share, because loading takes most of a test's time. Drops the
// unreported counts of earlier cases, but keeps their calls in flight, captures and handles.
FakeRun& shared_run(const std::string& words);

} // namespace gpusnoop
