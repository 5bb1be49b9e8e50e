// SPDX-License-Identifier: Apache-2.0
// Reason why the kernel refused a BPF object, found in the error code and the log of libbpf and the verifier.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <linux/bpf.h>
#include <span>
#include <string>
#include <string_view>

namespace gpusnoop {

enum class RefusalCause : uint8_t {
    function,   // a program calls a kernel function that is missing or has changed
    too_large,  // a program exceeds the verifier's limits
    verifier,   // the verifier rejected a program
    map,        // a map cannot be created
    memory,     // out of memory, or the locked-memory limit is too low
    permission, // BPF is forbidden altogether
    unknown,
};

struct Refusal {
    RefusalCause cause = RefusalCause::unknown;
    int error = 0;       // errno
    std::string program; // the refused program; empty if no single program is the cause
    std::string detail;  // depending on cause: a function, a map, or the verifier's message; may be empty

    std::string reason() const; // "the verifier gave up after 1000001 instructions"
    std::string text() const;   // "the kernel refused the BPF program launch_entry: " followed by reason()
    std::string hint() const;   // advice for the user
};

std::string kernel_release(); // "6.12.1-amd64"

// Finds the cause in an error code and in the log, which is libbpf's output (1.1 or later) during the load.
Refusal refusal_of(int error, std::string_view log);

// Thrown if the kernel refuses an object. The caller may try a fallback.
class LoadError : public Error {
public:
    explicit LoadError(Refusal refusal) : Error(refusal.text(), refusal.hint()), refusal_(std::move(refusal)) {}
    const Refusal& refusal() const { return refusal_; }

private:
    Refusal refusal_;
};

// Captures the output of libbpf on this thread while the object exists. With -vv, the output is also printed. A thread
// may have only one such object at a time.
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

// Silences libbpf unless -vv is given, because its warnings help only users who know its internals.
void quiet_libbpf();

// Under the kernel's confidentiality lockdown, BPF helpers may read the memory of processes, but not kernel memory.
// libbpf (1.3 to 1.7) tests only the BPF helper that reads kernel memory. If the kernel refuses that helper, libbpf
// assumes a kernel before 5.5. It then replaces the helpers for kernel memory and for user memory by bpf_probe_read()
// and bpf_probe_read_str(), which the lockdown forbids, too.

// Detects the lockdown by loading test programs, because securityfs, which shows the lockdown state, may be absent in
// containers.
bool is_confidentiality_lockdown();

// Restores the calls of the BPF helpers that read user memory, which libbpf has replaced. Calls that read kernel memory
// need no repair: under lockdown, our BPF programs use plain loads instead of helpers (bpf/base/machine.bpf.h).
void restore_user_reads(std::span<bpf_insn> code);

} // namespace gpusnoop
