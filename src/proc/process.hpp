// SPDX-License-Identifier: Apache-2.0
// Functions that read /proc of a process. The process may exit during any call.
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
    bool vdso = false;    // true for the vdso, which the kernel maps without a file
    bool deleted = false; // true if /proc marks the path as " (deleted)"; the mark is cut off
    std::string path;     // as the process sees it; empty for anonymous memory
};

// Parses the text of a maps file; skips malformed lines.
std::vector<Mapping> parse_maps(std::string_view text);

// Returns the file mappings of a process, from the first 16 MiB of its maps file. Empty if the process has exited or
// reading is not permitted.
std::vector<Mapping> mappings(pid_t pid);

// Returns the executable file mappings of a process, and the vdso.
std::vector<Mapping> code_mappings(pid_t pid);

// Returns the executable mappings of a process that have no file, such as JIT-compiled code.
std::vector<Mapping> anonymous_code(pid_t pid);

// True if reading the mappings is not permitted (no CAP_SYS_PTRACE).
bool mappings_are_refused(pid_t pid);

// True if the process has memory. Kernel threads and exited processes have none. The process cannot delay the call.
bool has_memory(pid_t pid);

// Returns the environment with which a process was started: zero-terminated "NAME=VALUE" strings. The length is limited
// to what execve() allows, because a process can make /proc show any part of its memory instead (PR_SET_MM_MAP).
std::string environment(pid_t pid);

// Returns the command line of a process, with spaces between the words, up to 4 KiB. Empty if the process has exited or
// is a kernel thread. Call it in a helper, because it reads memory of the process, which can block the reader
// (userfaultfd).
std::string command_line(pid_t pid);

// Returns the absolute folders in the LD_LIBRARY_PATH of an environment, at most 32.
std::vector<std::string> library_path(std::string_view environment);

// Returns the owner of a process: its real user id or, if that is root, its mount namespace, so that containers count
// as different owners. nullopt if the process has exited.
std::optional<uint64_t> owner_of(pid_t pid);

// Returns the cgroups of a process, as lines "HIERARCHY:CONTROLLERS:PATH". Empty if the process has exited.
std::string cgroup_lines(pid_t pid);

// Returns the inode of the process's mount namespace; 0 if the process has exited.
uint64_t mount_namespace(pid_t pid);

// All process ids in /proc.
std::vector<pid_t> all_processes();

// True if the process exists, even as a zombie.
bool is_alive(pid_t pid);

// Name of the main thread, without the newline; nullopt if the process does not exist.
std::optional<std::string> process_name(pid_t pid);

// Names of all threads of a process.
std::vector<std::string> thread_names(pid_t pid);

// Rounds a time down to the resolution of /proc/PID/stat: USER_HZ is 100 on every architecture with CUDA.
constexpr uint64_t to_clock_tick(uint64_t ns)
{
    return ns - ns % 10'000'000;
}

// Start time of a process in CLOCK_BOOTTIME nanoseconds, with the resolution of to_clock_tick(); 0 if the process
// does not exist.
uint64_t start_time_ns(pid_t pid);

// CPU time of all threads of a process, including exited threads, in steps of 10 ms; 0 if the process does not exist.
uint64_t cpu_time_ns(pid_t pid);

// CPU and run-queue time of a thread since its start (schedstat).
struct ThreadCpuTime {
    uint64_t used_ns = 0;
    uint64_t waited_ns = 0; // time ready to run without a CPU: all were busy, or the cgroup was throttled
    uint64_t turns = 0;     // number of timeslices
};

// nullopt if the thread has exited, or if the kernel lacks CONFIG_SCHED_INFO.
std::optional<ThreadCpuTime> thread_cpu_time(pid_t pid, pid_t tid);

// Number of CPUs that a process may run on; 0 if the process has exited.
unsigned allowed_cpus(pid_t pid);

// Start time of a thread; 0 if the thread has exited, even if it is still a zombie.
uint64_t thread_start_time_ns(pid_t pid, pid_t tid);

// Describes the activity of a thread, for messages: "runs", "sleeps in futex_wait_queue", "is stopped". Empty if the
// thread has exited.
std::string thread_activity(pid_t pid, pid_t tid);

// Returns a field of a stat file by its number in proc(5), from 3 (state) on. Empty if there is no such field. Field 2,
// the name, may contain any characters, so the last parenthesis ends it.
std::string_view stat_field(std::string_view stat, int number);

// Returns the value of the line "Key: VALUE" of a status file; empty if there is no such line. Ignores the first line,
// which has the process name. The name cannot fake another line, because the kernel escapes newlines.
std::string_view status_value(std::string_view status, std::string_view key);

// Returns the process to which a thread belongs (Tgid of /proc/TID/status); nullopt if the thread does not exist.
std::optional<pid_t> process_of_thread(pid_t tid);

// Returns the parent of a process, or 0 for the first process; nullopt if the process has exited.
std::optional<pid_t> parent_of(pid_t pid);

// True if the process runs under a seccomp filter (Seccomp: 2 in its status).
bool has_seccomp_filter(pid_t pid);

// Reads memory of a process, and may fault pages in. Returns false if any part could not be read.
bool read_memory(pid_t pid, uint64_t address, void* to, size_t size);

// Reads a zero-terminated string of at most max bytes from the memory of a process; nullopt if the memory is
// unreadable.
std::optional<std::string> read_string(pid_t pid, uint64_t address, size_t max);

} // namespace gpusnoop
