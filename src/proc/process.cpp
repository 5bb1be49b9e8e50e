// SPDX-License-Identifier: Apache-2.0
#include "proc/process.hpp"

#include "base/fd.hpp"
#include "base/text.hpp"
#include "proc/mapped_file.hpp"
#include "proc/threads.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sched.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

namespace gpusnoop {

std::string_view stat_field(std::string_view stat, int number)
{
    const size_t name_end = stat.rfind(')');
    stat.remove_prefix(name_end == std::string_view::npos ? stat.size() : name_end + 1);
    for (int field = 3; field <= number; field++)
        next_part(stat, ' ');
    return stat.substr(0, stat.find_first_of(" \n"));
}

std::string_view status_value(std::string_view status, std::string_view key)
{
    const std::string at_begin = fmt::format("\n{}:", key);
    const size_t at = status.find(at_begin);
    if (at == std::string_view::npos)
        return {};
    status.remove_prefix(at + at_begin.size());
    return trimmed(status.substr(0, status.find('\n')));
}

namespace {

// A process controls the number of its mappings and the length of their paths. Real processes stay far below this
// limit.
constexpr size_t max_proc_file = 16 << 20;
constexpr size_t max_environment = 6 << 20; // limit of execve(): three quarters of 8 MiB (commit da029c11e6b1)

Fd open_proc(pid_t pid, const char* file)
{
    return Fd(open(("/proc/" + std::to_string(pid) + '/' + file).c_str(), O_RDONLY | O_CLOEXEC));
}

std::optional<std::string> read_proc(pid_t pid, const char* file, size_t max = max_proc_file)
{
    const Fd fd = open_proc(pid, file);
    if (!fd)
        return std::nullopt;
    auto text = read_text(fd, max);
    if (text && text->size() > max_proc_file)
        text->resize(text->rfind('\n') + 1); // drops a truncated last line, whose path would be wrong
    return text;
}

// Parses a number and a separator at the start of the text, and removes them.
template<typename T>
bool consume_field(std::string_view& text, T& number, int base, char separator)
{
    const auto value = consume_number<T>(text, base);
    if (!value || !text.starts_with(separator))
        return false;
    number = *value;
    text.remove_prefix(1);
    return true;
}

template<typename T = pid_t>
std::optional<T> number_in_status(pid_t pid, std::string_view key)
{
    return leading_number<T>(status_value(read_proc(pid, "status").value_or(""), key));
}

struct Stat {
    char state = 0;
    uint64_t start_ns = 0; // 0 if the file does not exist
    uint64_t cpu_ns = 0;   // user and system
};

Stat read_stat(pid_t pid, const char* file)
{
    constexpr int state = 3, user_time = 14, system_time = 15, start_time = 22;
    const std::string text = read_proc(pid, file).value_or("");
    const uint64_t tick_ns = 1'000'000'000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
    const auto time_ns = [&](int field) {
        return parse_number<uint64_t>(stat_field(text, field)).value_or(0) * tick_ns;
    };
    const std::string_view letter = stat_field(text, state);
    return {.state = letter.empty() ? '\0' : letter.front(),
            .start_ns = time_ns(start_time),
            .cpu_ns = time_ns(user_time) + time_ns(system_time)};
}

// Reads a file in /proc/PID that needs the process's memory: maps, environ or cmdline. If the main thread has exited,
// its file is empty or unreadable, so the file of another thread is read.
std::optional<std::string> read_memory_file(pid_t pid, const char* file, size_t max = max_proc_file)
{
    auto text = read_proc(pid, file, max);
    if (!text || text->empty())
        if (const auto thread = other_running_thread(pid))
            text = read_proc(*thread, file, max);
    return text;
}

std::string decode_path(std::string_view text)
{
    // The kernel escapes newlines, but not backslashes. So a literal "\012" in a name is decoded as a newline, too.
    constexpr std::string_view newline = "\\012";
    std::string path;
    path.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const size_t found = std::min(text.find(newline, at), text.size());
        path.append(text, at, found - at);
        if (found < text.size())
            path += '\n';
        at = found + newline.size();
    }
    return path;
}

// Parses a line "start-end perms offset major:minor inode [spaces path]".
std::optional<Mapping> parse_mapping(std::string_view line)
{
    Mapping m;
    if (!consume_field(line, m.start, 16, '-') || !consume_field(line, m.end, 16, ' ') || m.end <= m.start)
        return std::nullopt;
    if (line.size() < 5 || line[4] != ' ' || (line[2] != 'x' && line[2] != '-'))
        return std::nullopt;
    m.executable = line[2] == 'x';
    line.remove_prefix(5);

    unsigned major_number = 0;
    unsigned minor_number = 0;
    if (!consume_field(line, m.file_offset, 16, ' ') || !consume_field(line, major_number, 16, ':') ||
        !consume_field(line, minor_number, 16, ' '))
        return std::nullopt;
    m.device = makedev(major_number, minor_number);

    const auto inode = consume_number<decltype(m.inode)>(line);
    if (!inode || (!line.empty() && line.front() != ' '))
        return std::nullopt;
    m.inode = *inode;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));

    // [heap], [anon:name] and anon_inode:[perf_event] are not paths.
    if (line.empty() || line.front() != '/') {
        m.vdso = line == "[vdso]";
        return m;
    }
    m.deleted = cut_deleted(line);
    m.path = decode_path(line);
    return m;
}

} // namespace

std::vector<Mapping> parse_maps(std::string_view text)
{
    std::vector<Mapping> all;
    while (!text.empty())
        if (auto mapping = parse_mapping(next_part(text, '\n')))
            all.push_back(std::move(*mapping));
    return all;
}

std::vector<Mapping> mappings(pid_t pid)
{
    auto all = parse_maps(read_memory_file(pid, "maps").value_or(""));
    std::erase_if(all, [](const Mapping& m) { return m.path.empty(); });
    return all;
}

std::vector<Mapping> code_mappings(pid_t pid)
{
    auto all = parse_maps(read_memory_file(pid, "maps").value_or(""));
    std::erase_if(all, [](const Mapping& m) { return !m.executable || (m.path.empty() && !m.vdso); });
    return all;
}

std::vector<Mapping> anonymous_code(pid_t pid)
{
    auto all = parse_maps(read_memory_file(pid, "maps").value_or(""));
    std::erase_if(all, [](const Mapping& m) { return !m.executable || !m.path.empty() || m.vdso; });
    return all;
}

bool mappings_are_refused(pid_t pid)
{
    return !open_proc(running_thread(pid).value_or(pid), "maps") && (errno == EACCES || errno == EPERM);
}

bool has_memory(pid_t pid)
{
    const auto has_pages = [](pid_t id) {
        const auto pages = read_proc(id, "statm");
        return pages && !pages->starts_with("0 ");
    };
    if (has_pages(pid))
        return true;
    const auto thread = other_running_thread(pid);
    return thread && has_pages(*thread);
}

std::string environment(pid_t pid)
{
    return read_memory_file(pid, "environ", max_environment).value_or("");
}

std::string command_line(pid_t pid)
{
    constexpr size_t max_shown = 4096;
    std::string text = read_memory_file(pid, "cmdline", max_shown).value_or("");
    text.resize(std::min(text.size(), max_shown));
    text.resize(text.find_last_not_of('\0') + 1);
    std::ranges::replace(text, '\0', ' ');
    return text;
}

std::vector<std::string> library_path(std::string_view environment)
{
    constexpr std::string_view after_another("\0LD_LIBRARY_PATH=", 17);
    const size_t at = environment.starts_with(after_another.substr(1)) ? 0 : environment.find(after_another);
    if (at == std::string_view::npos)
        return {};
    environment.remove_prefix(environment.find('=', at) + 1);
    std::istringstream list(std::string(environment.substr(0, environment.find('\0'))));
    std::vector<std::string> folders;
    for (std::string folder; std::getline(list, folder, ':') && folders.size() < 32;)
        if (folder.starts_with('/') && folder.size() < PATH_MAX)
            folders.push_back(folder);
    return folders;
}

std::optional<uint64_t> owner_of(pid_t pid)
{
    const auto user = number_in_status<uint32_t>(pid, "Uid");
    if (!user)
        return std::nullopt;
    constexpr uint64_t by_namespace = uint64_t{1} << 63;
    return *user ? *user : by_namespace | mount_namespace(pid);
}

std::string cgroup_lines(pid_t pid)
{
    // Reads the file of a running thread. If the main thread has exited, its own file shows the root cgroup (v1) or its
    // last cgroup (v2).
    return read_proc(running_thread(pid).value_or(pid), "cgroup").value_or("");
}

uint64_t mount_namespace(pid_t pid)
{
    const auto inode = [](pid_t id) -> uint64_t {
        struct stat st {};
        return stat(fmt::format("/proc/{}/ns/mnt", id).c_str(), &st) == 0 ? st.st_ino : 0;
    };
    if (const uint64_t found = inode(pid))
        return found;
    const auto thread = other_running_thread(pid);
    return thread ? inode(*thread) : 0;
}

namespace {

// Returns the numeric names of the entries of a /proc folder.
std::vector<pid_t> numbers_in(const std::string& folder)
{
    std::vector<pid_t> all;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename();
        if (const auto pid = parse_number<pid_t>(name); pid && *pid > 0)
            all.push_back(*pid);
    }
    return all;
}

} // namespace

std::vector<pid_t> all_processes()
{
    return numbers_in("/proc");
}

bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0 || errno != ESRCH;
}

std::optional<std::string> process_name(pid_t pid)
{
    auto name = read_proc(pid, "comm");
    if (name && name->ends_with('\n'))
        name->pop_back();
    return name;
}

std::vector<std::string> thread_names(pid_t pid)
{
    std::vector<std::string> names;
    for (const pid_t tid : numbers_in(fmt::format("/proc/{}/task", pid)))
        if (auto name = process_name(tid)) // /proc/TID/comm also works for threads
            names.push_back(std::move(*name));
    return names;
}

uint64_t start_time_ns(pid_t pid)
{
    return read_stat(pid, "stat").start_ns;
}

uint64_t cpu_time_ns(pid_t pid)
{
    return read_stat(pid, "stat").cpu_ns;
}

std::optional<ThreadCpuTime> thread_cpu_time(pid_t pid, pid_t tid)
{
    const auto text = read_proc(pid, ("task/" + std::to_string(tid) + "/schedstat").c_str());
    if (!text)
        return std::nullopt;
    std::string_view rest(*text);
    ThreadCpuTime share;
    // A kernel without this accounting shows three zeros (sched_info_on()).
    if (!consume_field(rest, share.used_ns, 10, ' ') || !consume_field(rest, share.waited_ns, 10, ' ') ||
        !consume_field(rest, share.turns, 10, '\n') || !share.turns)
        return std::nullopt;
    return share;
}

unsigned allowed_cpus(pid_t pid)
{
    constexpr size_t cpus_max = 8192; // limit of Linux (NR_CPUS)
    std::array<cpu_set_t, cpus_max / CPU_SETSIZE> set{};
    return sched_getaffinity(running_thread(pid).value_or(pid), sizeof(set), set.data()) == 0
               ? static_cast<unsigned>(CPU_COUNT_S(sizeof(set), set.data()))
               : 0;
}

uint64_t thread_start_time_ns(pid_t pid, pid_t tid)
{
    const Stat stat = read_stat(pid, ("task/" + std::to_string(tid) + "/stat").c_str());
    return stat.state == 'Z' || stat.state == 'X' ? 0 : stat.start_ns;
}

std::string thread_activity(pid_t pid, pid_t tid)
{
    const std::string folder = "task/" + std::to_string(tid);
    const char state = read_stat(pid, (folder + "/stat").c_str()).state;
    const std::string_view words = state == 'R'                   ? "runs"
                                   : state == 'S'                 ? "sleeps"
                                   : state == 'D'                 ? "waits for a device or file"
                                   : state == 'T' || state == 't' ? "is stopped"
                                                                  : "";
    // wchan is "0" if the thread is running or the kernel hides the symbol.
    const std::string in = state == 'S' || state == 'D' ? read_proc(pid, (folder + "/wchan").c_str()).value_or("") : "";
    return std::string(words) + (in.empty() || in == "0" ? "" : " in " + in);
}

std::optional<pid_t> process_of_thread(pid_t tid)
{
    return number_in_status(tid, "Tgid");
}

std::optional<pid_t> parent_of(pid_t pid)
{
    return number_in_status(pid, "PPid");
}

bool has_seccomp_filter(pid_t pid)
{
    return number_in_status(running_thread(pid).value_or(pid), "Seccomp") == 2;
}

bool read_memory(pid_t pid, uint64_t address, void* to, size_t size)
{
    if (size == 0)
        return true;
    if (address + size < address)
        return false;
    const iovec local{to, size};
    const iovec remote{reinterpret_cast<void*>(address), size}; // NOLINT(performance-no-int-to-ptr)
    if (process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size))
        return true;
    if (errno == ESRCH) {
        const auto thread = other_running_thread(pid);
        if (!thread)
            return false;
        pid = *thread;
        if (process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size))
            return true;
    }

    // Fallback for kernels without CONFIG_CROSS_MEMORY_ATTACH, and for pages that the process itself may not read.
    const Fd memory = open_proc(pid, "mem");
    auto* const bytes = static_cast<char*>(to);
    for (size_t done = 0; done < size;) {
        const ssize_t got = pread(memory.get(), bytes + done, size - done, static_cast<off_t>(address + done));
        if (got > 0)
            done += static_cast<size_t>(got);
        else if (got == 0 || errno != EINTR)
            return false;
    }
    return true;
}

std::optional<std::string> read_string(pid_t pid, uint64_t address, size_t max)
{
    constexpr size_t page = 4096;
    std::string text;
    std::array<char, page> buffer;
    while (text.size() < max) {
        // Reads one page at a time, because the string may end in this page and the next page may be unmapped.
        const uint64_t at = address + text.size();
        const size_t size = std::min<size_t>(page - at % page, max - text.size());
        if (!read_memory(pid, at, buffer.data(), size))
            return std::nullopt;
        const size_t length = strnlen(buffer.data(), size);
        text.append(buffer.data(), length);
        if (length < size)
            break;
    }
    return text;
}

} // namespace gpusnoop
