// SPDX-License-Identifier: Apache-2.0
// What /proc says about one process. Every function survives the process going away in the middle.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// One line of /proc/PID/maps.
struct Mapping {
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t file_offset = 0;
    uint64_t device = 0; // makedev(major, minor)
    uint64_t inode = 0;
    bool executable = false;
    bool vdso = false;    // the kernel's own code, of no file
    bool deleted = false; // the path ended in " (deleted)", which is cut off
    std::string path;     // as the process sees it; empty for anonymous memory
};

// Parses the text of a maps file; lines that do not fit the format are skipped.
std::vector<Mapping> parse_maps(std::string_view text);

// The file mappings of a process, as many as 16 MiB of text tell; empty where it is gone or not readable.
std::vector<Mapping> mappings(pid_t pid);

// Those with code: of files, and the vdso.
std::vector<Mapping> code_mappings(pid_t pid);

// Those with code of no file: what a compiler at run time has written.
std::vector<Mapping> anonymous_code(pid_t pid);

// True where we are not allowed to read them (no CAP_SYS_PTRACE).
bool mappings_are_refused(pid_t pid);

// It has memory of its own, which it loses at its end. Asks nothing that the process could delay.
bool has_memory(pid_t pid);

// The environment that a process was started with, "NAME=VALUE" and a zero byte each. No more than what the kernel lets
// a program have, for a process can make /proc show any part of its memory as that (PR_SET_MM_MAP).
std::string environment(pid_t pid);

// What it says it was started as: words with a blank between them, its first 4 KiB. Empty where it is gone, has no
// memory, or says nothing. This is memory of the process, which can make the reader wait (userfaultfd): a helper's
// work.
std::string command_line(pid_t pid);

// The folders of LD_LIBRARY_PATH in an environment; absolute ones, a few at most.
std::vector<std::string> library_path(std::string_view environment);

// Who can make it do things: its real user or, of root's processes, their mount namespace, which tells containers
// apart. Nullopt where it is gone.
std::optional<uint64_t> owner_of(pid_t pid);

// Its cgroups, "HIERARCHY:CONTROLLERS:PATH" in a line each; empty where it is gone.
std::string cgroup_lines(pid_t pid);

// The mount namespace it lives in, by inode; 0 where it is gone.
uint64_t mount_namespace(pid_t pid);

// All process ids in /proc.
std::vector<pid_t> all_processes();

// There is such a process, if only to be waited for.
bool is_alive(pid_t pid);

// Group leader's name without the newline; nullopt where the process is gone.
std::optional<std::string> process_name(pid_t pid);

// Those of all of its threads.
std::vector<std::string> thread_names(pid_t pid);

// A time as /proc/PID/stat has it: USER_HZ is 100 on every architecture with CUDA.
constexpr uint64_t to_clock_tick(uint64_t ns)
{
    return ns - ns % 10'000'000;
}

// CLOCK_BOOTTIME nanoseconds, to_clock_tick(); 0 where the process is gone.
uint64_t start_time_ns(pid_t pid);

// CPU time of all of its threads so far, of those that have ended, too, in steps of 10 ms; 0 where the process is gone.
uint64_t cpu_time_ns(pid_t pid);

// What a thread has had of the CPUs so far.
struct ThreadCpuTime {
    uint64_t used_ns = 0;
    uint64_t waited_ns = 0; // ready to run, but without one: others had them, or its cgroup's quota was used up
    uint64_t turns = 0;     // times that it was given one
};

// nullopt where it has ended, or the kernel does not tell (CONFIG_SCHED_INFO).
std::optional<ThreadCpuTime> thread_cpu_time(pid_t pid, pid_t tid);

// CPUs that a process may run on; 0 where it is gone.
unsigned allowed_cpus(pid_t pid);

// The start of a thread; 0 where it has ended, or its process has, even if nobody has waited for it yet.
uint64_t thread_start_time_ns(pid_t pid, pid_t tid);

// What a thread does at this moment, in words: "runs", "sleeps in futex_wait_queue", "is stopped"; empty where it has
// ended.
std::string thread_activity(pid_t pid, pid_t tid);

// A field of a stat file, by its number in proc(5), from 3 (state) on; empty if there is none. The name in front of it
// may hold anything: the last parenthesis ends it.
std::string_view stat_field(std::string_view stat, int number);

// What stands behind "Key:" at the begin of a line of a status file, the first line excepted; empty if there is none.
// The name in the first line cannot fake a line: the kernel escapes newlines.
std::string_view status_value(std::string_view status, std::string_view key);

// The process that a thread id belongs to (Tgid of /proc/TID/status); nullopt where there is none.
std::optional<pid_t> process_of_thread(pid_t tid);

// The process that it is a child of, 0 for the first; nullopt where it is gone.
std::optional<pid_t> parent_of(pid_t pid);

// True where the process runs under a seccomp filter (Seccomp: 2 in its status).
bool has_seccomp_filter(pid_t pid);

// Reads from the memory of a process, faulting pages in. False where not all of it could be read.
bool read_memory(pid_t pid, uint64_t address, void* to, size_t size);

// A zero-terminated string of at most max bytes from the memory of a process; nullopt where unreadable.
std::optional<std::string> read_string(pid_t pid, uint64_t address, size_t max);

} // namespace gpusnoop
