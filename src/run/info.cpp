// SPDX-License-Identifier: Apache-2.0
#include "run/info.hpp"

#include "attach/calibrate.hpp"
#include "attach/known_files.hpp"
#include "attach/refusal.hpp"
#include "attach/targets.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/privileges.hpp"
#include "base/text.hpp"
#include "gpu/nvml_figures.hpp"
#include "proc/process.hpp"
#include "rows/call_sums.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <utility>

namespace gpusnoop {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds time_for_files(10);

// Memory in bytes that the kernel charges for a BPF map or program.
uint64_t charged(int fd)
{
    constexpr size_t max = 4096;
    const std::string text = read_text(fmt::format("/proc/self/fdinfo/{}", fd), max).value_or("");
    return leading_number<uint64_t>(status_value(text, "memlock")).value_or(0);
}

Json maps_of(const bpf_object* object)
{
    Json maps = Json::array();
    const bpf_map* map = nullptr;
    bpf_object__for_each_map (map, object)
        if (const int fd = bpf_map__fd(map); fd >= 0 && bpf_map__autocreate(map))
            maps.push_back({{"name", bpf_map__name(map)},
                            {"map_type", libbpf_bpf_map_type_str(bpf_map__type(map))},
                            {"key_bytes", bpf_map__key_size(map)},
                            {"value_bytes", bpf_map__value_size(map)},
                            {"entries", bpf_map__max_entries(map)},
                            {"bytes", charged(fd)}});
    return maps;
}

Json programs_of(const bpf_object* object)
{
    Json programs = Json::array();
    bpf_program* program = nullptr;
    bpf_object__for_each_program (program, object) {
        bpf_prog_info info{};
        uint32_t size = sizeof(info);
        const int fd = bpf_program__fd(program);
        if (fd >= 0 && bpf_prog_get_info_by_fd(fd, &info, &size) == 0)
            programs.push_back({{"name", bpf_program__name(program)},
                                {"instructions", bpf_program__insn_cnt(program)},
                                {"verified", info.verified_insns}, // 0 on kernels before 5.16
                                {"bytes", charged(fd)}});
    }
    return programs;
}

uint64_t sum_of(const Json& list, const char* key)
{
    uint64_t sum = 0;
    for (const Json& one : list)
        sum += one.at(key).get<uint64_t>();
    return sum;
}

Json capabilities()
{
    Json held;
    held["CAP_SYS_ADMIN"] = has_capability(CAP_SYS_ADMIN);
    held["CAP_BPF"] = has_capability(CAP_BPF);
    held["CAP_PERFMON"] = has_capability(CAP_PERFMON);
    held["CAP_SYS_PTRACE"] = has_capability(CAP_SYS_PTRACE);
    held["CAP_SYS_RESOURCE"] = has_capability(CAP_SYS_RESOURCE);
    held["CAP_DAC_READ_SEARCH"] = has_capability(CAP_DAC_READ_SEARCH);
    return held;
}

Json ways_of_attaching()
{
    Json ways = Json::array();
    for (size_t i = 0; i < std::size(tier_names); i++) {
        const std::string why = why_tier_fails(static_cast<Tier>(i));
        ways.push_back({{"name", tier_names[i]}, {"works", why.empty()}});
        if (!why.empty())
            ways.back()["why"] = why;
    }
    return ways;
}

// Adds the files that a run would probe now, and complaints about files that cannot be probed.
void add_files(Json& all, const InfoOf& of)
{
    Targets targets(of.probes, of.plan.counts_runtime);
    const std::vector<pid_t> processes = of.scope.processes();
    std::vector<Targets::Scan> scans;
    for (const pid_t pid : processes)
        scans.push_back({pid});
    for (const pid_t pid : of.scope.is_unfiltered() || of.scope.named() ? std::vector{getpid()} : of.scope.pids())
        scans.push_back({pid, true});
    std::set<const CudaFile*> found;
    for (const Targets::Found& one : targets.found_all(scans, time_for_files, [] {}))
        found.insert(one.files.begin(), one.files.end());
    if (std::string left = Targets::describe_unfinished(scans); !left.empty())
        targets.complain(std::move(left));
    std::vector<const CudaFile*> files(found.begin(), found.end());
    std::ranges::sort(files, {}, &CudaFile::path);
    all["processes"] = processes.size();
    all["files"] = Json::array();
    for (const CudaFile* file : files)
        all["files"].push_back({{"path", file->path}, {"functions", file->places.size()}, {"missing", file->missing}});
    all["complaints"] = targets.complaints();
}

Json nvml(const std::string& library)
{
    std::string why;
    try {
        NvmlFigures figures(library);
        figures.refresh();
        if (figures.available())
            return {{"available", true}, {"devices", figures.states().size()}};
        why = figures.why();
    } catch (const Error& error) {
        why = error.what();
    }
    return {{"available", false}, {"why", why}};
}

Json gather(const InfoOf& of)
{
    utsname system{};
    uname(&system);
    struct stat btf {};
    stat("/sys/kernel/btf/vmlinux", &btf);
    Json all;
    all["type"] = "info";
    all["tool"] = of.tool;
    all["version"] = GPUSNOOP_VERSION;
    all["kernel"] = kernel_release();
    all["machine"] = system.machine;
    all["possible_cpus"] = libbpf_num_possible_cpus();
    all["btf_bytes"] = btf.st_size;
    all["confidential"] = is_confidentiality_lockdown();
    all["capabilities"] = capabilities();
    all["ways"] = ways_of_attaching();
    all["way"] = of.tier ? Json(tier_name(*of.tier)) : Json();
    if (of.kernel_hooks) {
        const std::string waits_for = of.kernel_hooks->waits_for();
        all["kernel_functions"] = of.kernel_hooks->functions();
        all["kernel_ways"] = of.kernel_hooks->ways();
        if (!waits_for.empty())
            all["waits_for"] = waits_for;
    }
    all["remarks"] = of.remarks;
    all["descriptors"] = {{"open", open_descriptors()}, {"limit", descriptor_limit()}};
    all["maps"] = maps_of(of.object);
    all["map_bytes"] = sum_of(all["maps"], "bytes");
    all["programs"] = programs_of(of.object);
    all["program_bytes"] = sum_of(all["programs"], "bytes");
    all["verified"] = sum_of(all["programs"], "verified");
    if (of.tier) {
        add_files(all, of);
        all["functions"] = sum_of(all["files"], "functions");
    }
    all["limits"] = {{"files_of_process", KnownFiles::files_of_process_max},
                     {"files_of_owner", KnownFiles::files_of_owner_max},
                     {"files", KnownFiles::files_max},
                     {"rows_of_report", CallSums::usual_limit}};
    all["nvml"] = nvml(of.plan.nvml_library);
    return all;
}

std::string kib(const Json& bytes)
{
    return fmt::format("{} KiB", (bytes.get<uint64_t>() + 1023) / 1024);
}

std::string word(const Json& text)
{
    return printable(text.get<std::string>());
}

void write_machine(std::string& out, const Json& all)
{
    out +=
        fmt::format("{} {}, Linux {}, {}, {} possible CPUs, {} of BTF\n", word(all["tool"]), word(all["version"]),
                    word(all["kernel"]), word(all["machine"]), all["possible_cpus"].get<int>(), kib(all["btf_bytes"]));
    if (all["confidential"])
        out += "the kernel is locked down in confidentiality mode: calls into its drivers cannot be traced\n";
    std::vector<std::string> held, missing;
    for (const auto& [name, has] : all["capabilities"].items())
        (has.get<bool>() ? held : missing).push_back(name);
    out += fmt::format("capabilities: {}{}\n", joined(held, " "),
                       missing.empty() ? "" : "; without " + joined(missing, " "));
    out += fmt::format("open files: {} of {}\n", all["descriptors"]["open"].get<size_t>(),
                       all["descriptors"]["limit"].get<size_t>());
    const Json& nvml = all["nvml"];
    out +=
        nvml["available"] ? fmt::format("NVML: {} devices\n", nvml["devices"].get<size_t>()) : word(nvml["why"]) + "\n";
}

void write_attaching(std::string& out, const Json& all)
{
    out += "\nWays of attaching (each was tried):\n";
    for (const Json& way : all["ways"])
        out += fmt::format("  {:<8} {}{}\n", word(way["name"]),
                           way["works"] ? "works" : "does not work: " + word(way["why"]),
                           all["way"] == way["name"] ? "; the tool uses it" : "");
    if (all.contains("kernel_ways"))
        out += fmt::format("kernel functions: {}\n",
                           all.contains("waits_for") ? word(all["waits_for"])
                                                     : fmt::format("{}, by {}", all["kernel_functions"].get<unsigned>(),
                                                                   word(all["kernel_ways"])));
    for (const Json& remark : all["remarks"])
        out += word(remark) + "\n";
}

void write_tables(std::string& out, const Json& all)
{
    out += fmt::format("\n{:<24} {:<16} {:>6} {:>8} {:>10} {:>12}\n", "BPF MAP", "TYPE", "KEY", "VALUE", "ENTRIES",
                       "BYTES");
    for (const Json& map : all["maps"])
        out += fmt::format("{:<24} {:<16} {:>6} {:>8} {:>10} {:>12}\n", word(map["name"]), word(map["map_type"]),
                           map["key_bytes"].get<uint64_t>(), map["value_bytes"].get<uint64_t>(),
                           map["entries"].get<uint64_t>(), map["bytes"].get<uint64_t>());
    out += fmt::format("{} maps, {}\n", all["maps"].size(), kib(all["map_bytes"]));
    out += fmt::format("\n{:<32} {:>12} {:>10} {:>12}\n", "BPF PROGRAM", "INSTRUCTIONS", "VERIFIED", "BYTES");
    for (const Json& program : all["programs"])
        out +=
            fmt::format("{:<32} {:>12} {:>10} {:>12}\n", word(program["name"]), program["instructions"].get<uint64_t>(),
                        program["verified"].get<uint64_t>(), program["bytes"].get<uint64_t>());
    out += fmt::format("{} programs, {} instructions verified, {}\n", all["programs"].size(),
                       all["verified"].get<uint64_t>(), kib(all["program_bytes"]));
}

void write_files(std::string& out, const Json& all)
{
    const Json& limits = all["limits"];
    if (all.contains("files")) {
        out += fmt::format("\nProcesses scanned: {}; functions that a run would probe: {}, in {} files\n",
                           all["processes"].get<size_t>(), all["functions"].get<size_t>(), all["files"].size());
        for (const Json& file : all["files"])
            out += fmt::format("  {}: {} functions, {} missing\n", word(file["path"]), file["functions"].get<size_t>(),
                               file["missing"].size());
        for (const Json& complaint : all["complaints"])
            out += fmt::format("  {}\n", word(complaint));
        out += fmt::format("limits: {} CUDA libraries per process, {} per user or container, {} in total\n",
                           limits["files_of_process"].get<size_t>(), limits["files_of_owner"].get<size_t>(),
                           limits["files"].get<size_t>());
    }
    out += fmt::format("row limit per report: {}\n", limits["rows_of_report"].get<size_t>());
}

} // namespace

std::string info(const InfoOf& of)
{
    if (of.kernel_hooks)
        of.kernel_hooks->hook_new_drivers();
    const Json all = gather(of);
    if (of.options.json)
        return all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    std::string out;
    write_machine(out, all);
    write_attaching(out, all);
    write_tables(out, all);
    write_files(out, all);
    return out;
}

} // namespace gpusnoop
