// SPDX-License-Identifier: Apache-2.0
// LD_PRELOAD library that makes system calls fail, as if the kernel refused them. Each line of REFUSE is one of:
//     program NAME[@TYPE] ERRNO TEXT    loading a BPF program with attach type TYPE (a number); TEXT: verifier log
//     map NAME ERRNO                    creating a BPF map
//     helper NUMBER ERRNO               loading a program that calls this helper function
//     link PID ERRNO                    creating a uprobe_multi link for this process
//     call NUMBER ERRNO                 this system call
// NAME, PID and NUMBER are shell patterns. All other calls reach the real kernel.
#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fnmatch.h>
#include <linux/bpf.h>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/syscall.h>

namespace {

// Missing in the headers of the oldest supported distribution: BPF_TRACE_UPROBE_MULTI, and the offset of
// link_create.uprobe_multi.pid.
constexpr uint32_t uprobe_multi = 48;
constexpr size_t pid_offset = 56;

struct Answer {
    int error = 0;
    std::string text;
};

// BPF names are truncated to 15 bytes, so the patterns are truncated, too.
Answer answer_to(std::string_view kind, std::string_view name, unsigned type)
{
    const char* rules = getenv("REFUSE");
    std::istringstream lines(rules ? rules : "");
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string rule_kind, pattern;
        Answer answer;
        words >> rule_kind >> pattern >> answer.error;
        std::getline(words >> std::ws, answer.text);
        const size_t at = pattern.find('@');
        const bool typed = at != std::string::npos;
        const std::string name_pattern = pattern.substr(0, std::min<size_t>(at, BPF_OBJ_NAME_LEN - 1));
        if (rule_kind == kind && fnmatch(name_pattern.c_str(), std::string(name).c_str(), 0) == 0 &&
            (!typed || pattern.substr(at + 1) == std::to_string(type)))
            return answer;
    }
    return {};
}

// Also matches calls in unreachable code.
Answer answer_to_calls(const bpf_attr* program)
{
    const auto* code = reinterpret_cast<const bpf_insn*>(program->insns);
    for (uint32_t i = 0; i < program->insn_cnt; i++)
        if (code[i].code == (BPF_JMP | BPF_CALL) && !code[i].src_reg)
            if (Answer answer = answer_to("helper", std::to_string(code[i].imm), 0); answer.error)
                return answer;
    return {};
}

long refuse(const Answer& answer, const bpf_attr* attributes)
{
    if (attributes && attributes->log_buf && attributes->log_size) {
        const std::string log = answer.text.empty() ? "" : answer.text + "\nprocessed 12 insns (limit 1000000)\n";
        strncpy(reinterpret_cast<char*>(attributes->log_buf), log.c_str(), attributes->log_size - 1);
    }
    errno = answer.error;
    return -1;
}

} // namespace

extern "C" long syscall(long number, ...) noexcept
{
    va_list list;
    va_start(list, number);
    long words[6];
    for (long& word : words)
        word = va_arg(list, long);
    va_end(list);
    if (number == SYS_bpf) {
        const auto* attributes = reinterpret_cast<const bpf_attr*>(words[1]);
        if (words[0] == BPF_PROG_LOAD) {
            if (const Answer answer = answer_to("program", attributes->prog_name, attributes->expected_attach_type);
                answer.error)
                return refuse(answer, attributes);
            if (const Answer answer = answer_to_calls(attributes); answer.error)
                return refuse(answer, attributes);
        } else if (words[0] == BPF_MAP_CREATE) {
            if (const Answer answer = answer_to("map", attributes->map_name, 0); answer.error)
                return refuse(answer, nullptr);
        } else if (words[0] == BPF_LINK_CREATE && attributes->link_create.attach_type >= uprobe_multi) {
            int32_t pid = 0;
            memcpy(&pid, reinterpret_cast<const char*>(attributes) + pid_offset, sizeof(pid));
            if (const Answer answer = answer_to("link", std::to_string(pid), 0); answer.error)
                return refuse(answer, nullptr);
        }
    } else if (const Answer answer = answer_to("call", std::to_string(number), 0); answer.error) {
        return refuse(answer, nullptr);
    }
    using Syscall = long(long, ...);
    static auto* real = reinterpret_cast<Syscall*>(dlsym(RTLD_NEXT, "syscall"));
    return real(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
