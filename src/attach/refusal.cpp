// SPDX-License-Identifier: Apache-2.0
#include "attach/refusal.hpp"

#include "base/fd.hpp"

#include <array>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <fmt/format.h>
#include <iterator>
#include <new>
#include <optional>
#include <sys/utsname.h>
#include <utility>

namespace gpusnoop {

namespace {

LoadLog*& current_log()
{
    thread_local LoadLog* log = nullptr;
    return log;
}

// Called from C, so it must not throw.
int on_libbpf(libbpf_print_level level, const char* format, va_list arguments)
try {
    const bool shown = verbosity() >= 2, kept = level != LIBBPF_DEBUG && current_log();
    if (!shown && !kept)
        return 0;
    va_list copy;
    va_copy(copy, arguments);
    const int size = vsnprintf(nullptr, 0, format, copy);
    va_end(copy);
    if (size <= 0)
        return 0;
    std::string message(static_cast<size_t>(size) + 1, '\0');
    vsnprintf(message.data(), message.size(), format, arguments);
    message.pop_back();
    if (shown)
        print_stderr(message);
    if (kept)
        current_log()->add(message);
    return 0;
} catch (const std::bad_alloc&) {
    return 0;
}

// Returns the text between the last occurrence of `before` and the next occurrence of `after`.
std::optional<std::string> between(std::string_view text, std::string_view before, std::string_view after)
{
    const size_t at = text.rfind(before);
    if (at == std::string_view::npos)
        return std::nullopt;
    text.remove_prefix(at + before.size());
    const size_t end = text.find(after);
    if (end == std::string_view::npos)
        return std::nullopt;
    return std::string(text.substr(0, end));
}

// Name of the refused program, found in "libbpf: prog 'launch_entry': BPF program load failed: Invalid argument".
std::string refused_program(std::string_view log)
{
    const size_t at = log.find("': BPF program load failed");
    return at == std::string_view::npos ? "" : between(log.substr(0, at + 1), "prog '", "'").value_or("");
}

// Name of the helper or kfunc that a program cannot call, found in messages of the verifier and libbpf.
std::optional<std::string> missing_function(std::string_view log)
{
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> forms{{
        {"kfunc '", "' is referenced but wasn't resolved"},
        {"extern (func ksym) '", "':"},
        {"calling kernel function ", " is not allowed"},
        {"cannot use helper ", "#"},
        {"unknown func ", "#"},
        {"invalid func ", "\n"},
    }};
    for (const auto& [before, after] : forms)
        if (auto name = between(log, before, after); name && name->find('\n') == std::string::npos)
            return name;
    return std::nullopt;
}

// Returns the verifier's error message: the line above "processed 12 insns (limit 1000000) ...".
std::string verifier_message(std::string_view log)
{
    const size_t end = log.rfind("\nprocessed ");
    if (end == std::string_view::npos)
        return {};
    const size_t begin = log.rfind('\n', end - 1);
    return std::string(log.substr(begin == std::string_view::npos ? 0 : begin + 1, end - begin - 1));
}

} // namespace

std::string kernel_release()
{
    utsname names{};
    return uname(&names) ? "?" : names.release;
}

Refusal refusal_of(int error, std::string_view log)
{
    Refusal refusal;
    refusal.error = error;
    refusal.program = refused_program(log);
    auto because = [&](RefusalCause cause, std::string detail = {}) {
        refusal.cause = cause;
        refusal.detail = std::move(detail);
        return refusal;
    };
    const auto map = between(log, "map '", "': failed to create");
    const bool locked = log.find("ulimit -l") != std::string_view::npos;
    if (error == ENOMEM || locked)
        return because(RefusalCause::memory, locked ? "ulimit -l" : map.value_or(""));
    // EPERM or EACCES without a verifier message means that BPF is forbidden altogether.
    const std::string message = verifier_message(log);
    if ((error == EPERM || error == EACCES) && message.empty())
        return because(RefusalCause::permission);
    if (auto function = missing_function(log))
        return because(RefusalCause::function, *function);
    if (auto processed = between(log, "BPF program is too large. Processed ", " insn"))
        return because(RefusalCause::too_large, *processed);
    if (error == E2BIG)
        return because(RefusalCause::too_large);
    if (refusal.program.empty() && map)
        return because(RefusalCause::map, *map);
    if (!message.empty())
        return because(RefusalCause::verifier, message);
    return refusal;
}

std::string Refusal::reason() const
{
    switch (cause) {
    case RefusalCause::function:
        return fmt::format("it calls {}, which this kernel lacks or has in a different form", detail);
    case RefusalCause::too_large:
        return detail.empty() ? std::string("it is too large for this kernel's verifier")
                              : fmt::format("the verifier gave up after {} instructions", detail);
    case RefusalCause::verifier:
        return fmt::format("the verifier reports \"{}\"", detail);
    case RefusalCause::map:
        return fmt::format("the map {} cannot be created: {}", detail, errno_text(error));
    case RefusalCause::memory:
        if (detail == "ulimit -l")
            return "the limit of locked memory is too low";
        return detail.empty() ? std::string("out of memory") : fmt::format("out of memory for the map {}", detail);
    case RefusalCause::permission:
        return fmt::format("BPF is not permitted here: {}", errno_text(error));
    case RefusalCause::unknown:
        break;
    }
    return errno_text(error);
}

std::string Refusal::text() const
{
    if (program.empty())
        return fmt::format("the kernel refused the BPF programs: {}", reason());
    return fmt::format("the kernel refused the BPF program {}: {}", program, reason());
}

std::string Refusal::hint() const
{
    switch (cause) {
    case RefusalCause::permission:
        return "a seccomp filter, a security module or a missing capability forbids it: run the tool on the host, or "
               "in a privileged container";
    case RefusalCause::memory:
        if (detail == "ulimit -l")
            return "raise the limit with ulimit -l unlimited";
        return "raise the memory limit of the tool's cgroup, or lower --table-rows, --ring-mb or --live-entries";
    default:
        return fmt::format("this kernel (Linux {}) may be untested; run with -vv for the full log", kernel_release());
    }
}

LoadLog::LoadLog()
{
    current_log() = this;
}

LoadLog::~LoadLog()
{
    current_log() = nullptr;
}

void LoadLog::add(std::string_view message)
{
    // The log of a large program may be megabytes long, and the reason is at its end.
    constexpr size_t kept_bytes = 1 << 16;
    if (message.size() > kept_bytes) {
        text_ += message.substr(0, 256);
        text_ += '\n';
        message.remove_prefix(message.size() - kept_bytes);
    }
    text_ += message;
}

void quiet_libbpf()
{
    libbpf_set_print(on_libbpf);
}

namespace {

// Returns true if the kernel loads a program that reads one byte with this BPF helper.
bool may_call(bpf_func_id function)
{
    const bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_10, .off = 0, .imm = 0},
        {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1, .src_reg = 0, .off = 0, .imm = -8},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .src_reg = 0, .off = 0, .imm = 1},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .src_reg = 0, .off = 0, .imm = 0},
        {.code = BPF_JMP | BPF_CALL, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = function},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .src_reg = 0, .off = 0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
    };
    return bool(Fd(bpf_prog_load(BPF_PROG_TYPE_KPROBE, "gpusnoop_try", "GPL", code, std::size(code), nullptr)));
}

} // namespace

bool is_confidentiality_lockdown()
{
    return !may_call(BPF_FUNC_probe_read_kernel) && may_call(BPF_FUNC_probe_read_user);
}

void restore_user_reads(std::span<bpf_insn> code)
{
    for (bpf_insn& one : code) {
        if (one.code != (BPF_JMP | BPF_CALL) || one.src_reg) // if src_reg is set, this is not a call of a BPF helper
            continue;
        if (one.imm == BPF_FUNC_probe_read)
            one.imm = BPF_FUNC_probe_read_user;
        else if (one.imm == BPF_FUNC_probe_read_str)
            one.imm = BPF_FUNC_probe_read_user_str;
    }
}

} // namespace gpusnoop
