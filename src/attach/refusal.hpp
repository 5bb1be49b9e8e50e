// SPDX-License-Identifier: Apache-2.0
// Why the kernel did not load a BPF object, in a sentence: from the error, and from what libbpf and the verifier said.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <linux/bpf.h>
#include <span>
#include <string>
#include <string_view>

namespace gpusnoop {

enum class RefusalCause : uint8_t {
    function,   // of the kernel, which a program calls, is missing or has changed
    too_large,  // the verifier gave up
    verifier,   // ... or found fault with a program
    map,        // a map cannot be created
    memory,     // there is not enough, or it may not be locked
    permission, // BPF as a whole is forbidden
    unknown,
};

struct Refusal {
    RefusalCause cause = RefusalCause::unknown;
    int error = 0;       // errno
    std::string program; // the one that was refused; empty: not a program's fault
    std::string detail;  // by the cause: function, map, the verifier's last words; may be empty

    std::string reason() const; // "the verifier gave up after 1000001 instructions"
    std::string text() const;   // "the kernel refused the BPF program launch_entry: " and the reason
    std::string hint() const;   // what the user can do
};

std::string kernel_release(); // "6.12.1-amd64"

// log: what libbpf has said since the load began, in any version from 1.1 on.
Refusal refusal_of(int error, std::string_view log);

// Thrown where an object was refused, so that something else can be tried.
class LoadError : public Error {
public:
    explicit LoadError(Refusal refusal) : Error(refusal.text(), refusal.hint()), refusal_(std::move(refusal)) {}
    const Refusal& refusal() const { return refusal_; }

private:
    Refusal refusal_;
};

// As long as it lives it keeps what libbpf says. One at a time. With -vv that is shown as well.
class LoadLog {
public:
    LoadLog();
    ~LoadLog();
    LoadLog(const LoadLog&) = delete;
    LoadLog& operator=(const LoadLog&) = delete;

    const std::string& text() const { return text_; }
    void add(std::string_view message);

private:
    std::string text_;
};

// From now on libbpf is silent, but for -vv: its warnings explain a failure only to those who know it.
void quiet_libbpf();

// Programs in a kernel that is locked down in confidentiality mode: they may read the memory of processes, and not that
// of the kernel by a function. libbpf (1.3 to 1.7) asks for the latter, takes the answer for both, and has all of them
// call functions of before 5.5 instead, which that mode forbids, too.

// By trying: what says so is in securityfs, which a container need not have.
bool is_confidentiality_lockdown();

// What libbpf has replaced: in that mode, a program has no other reads (bpf/base/machine.bpf.h).
void restore_user_reads(std::span<bpf_insn> code);

} // namespace gpusnoop
