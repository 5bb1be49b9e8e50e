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
    bool vdso = false;    // code from the kernel, without a file
    bool deleted = false; // path ended in " (deleted)", which is removed
    std::string path;     // as the process sees it; empty for anonymous memory
};

// Parses the text of a maps file; skips malformed lines.
std::vector<Mapping> parse_maps(std::string_view text);

// The file mappings of a process, from up to 16 MiB of text. Empty if it has exited or may not be read.
std::vector<Mapping> mappings(pid_t pid);

// The executable mappings of files, and the vdso.
std::vector<Mapping> code_mappings(pid_t pid);

// The executable mappings without a file, such as JIT-compiled code.
std::vector<Mapping> anonymous_code(pid_t pid);

// True if reading the mappings is not permitted (no CAP_SYS_PTRACE).
bool mappings_are_refused(pid_t pid);

// True if the process has memory: false for kernel threads and exited processes. The process cannot delay the call.
bool has_memory(pid_t pid);

// The environment that a process was started with: zero-terminated "NAME=VALUE" strings. Limited to the length that
// execve() allows, because a process can make /proc show any part of its memory instead (PR_SET_MM_MAP).
std::string environment(pid_t pid);

// The command line of a process, with blanks between the words, up to 4 KiB. Empty if it has exited or has no memory.
// Call it in a helper: this reads memory of the process, which can block the reader (userfaultfd).
std::string command_line(pid_t pid);

// Absolute folders of LD_LIBRARY_PATH in an environment, 32 at most.
std::vector<std::string> library_path(std::string_view environment);

// The owner of a process: its real user or, for root's processes, the mount namespace, which distinguishes containers.
// nullopt if it has exited.
std::optional<uint64_t> owner_of(pid_t pid);

// The cgroups of a process, one line "HIERARCHY:CONTROLLERS:PATH" each; empty if it has exited.
std::string cgroup_lines(pid_t pid);

// The inode of the process's mount namespace; 0 if it has exited.
uint64_t mount_namespace(pid_t pid);

// All process ids in /proc.
std::vector<pid_t> all_processes();

// True if the process exists, zombies included.
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

// Start time of a process in CLOCK_BOOTTIME nanoseconds, with the resolution of to_clock_tick(); 0 if it does not
// exist.
uint64_t start_time_ns(pid_t pid);

// CPU time of all threads of a process, exited ones included, in steps of 10 ms; 0 if it does not exist.
uint64_t cpu_time_ns(pid_t pid);

// CPU and run-queue time of a thread since its start (schedstat).
struct ThreadCpuTime {
    uint64_t used_ns = 0;
    uint64_t waited_ns = 0; // ready to run, but without a CPU, because all are busy or the cgroup is throttled
    uint64_t turns = 0;     // number of timeslices
};

// nullopt if the thread has exited, or if the kernel lacks CONFIG_SCHED_INFO.
std::optional<ThreadCpuTime> thread_cpu_time(pid_t pid, pid_t tid);

// Number of CPUs that a process may run on; 0 if it has exited.
unsigned allowed_cpus(pid_t pid);

// Start time of a thread; 0 if the thread has exited, even if it is still a zombie.
uint64_t thread_start_time_ns(pid_t pid, pid_t tid);

// The activity of a thread, for messages: "runs", "sleeps in futex_wait_queue", "is stopped". Empty if it has exited.
std::string thread_activity(pid_t pid, pid_t tid);

// A field of a stat file, by its number in proc(5), from 3 (state) on; empty if there is none. Field 2, the name, may
// contain any characters, so it ends at the last parenthesis.
std::string_view stat_field(std::string_view stat, int number);

// The value of the line "Key: VALUE" of a status file; empty if there is none. Ignores the first line, which has the
// process name. The name cannot fake another line, because the kernel escapes newlines.
std::string_view status_value(std::string_view status, std::string_view key);

// The process that a thread id belongs to (Tgid of /proc/TID/status); nullopt if there is none.
std::optional<pid_t> process_of_thread(pid_t tid);

// The parent of a process, 0 for the first process; nullopt if it has exited.
std::optional<pid_t> parent_of(pid_t pid);

// True if the process runs under a seccomp filter (Seccomp: 2 in its status).
bool has_seccomp_filter(pid_t pid);

// Reads memory of a process, and may fault pages in. Returns false if not all of it could be read.
bool read_memory(pid_t pid, uint64_t address, void* to, size_t size);

// A zero-terminated string of at most max bytes from the memory of a process; nullopt if the memory is unreadable.
std::optional<std::string> read_string(pid_t pid, uint64_t address, size_t max);

} // namespace gpusnoop
