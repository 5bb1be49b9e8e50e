// SPDX-License-Identifier: Apache-2.0
// What gpusnoop finds in a library or program:
//
//     inspect placement FILE       where probes on functions would be placed: names from stdin, a JSON line for each.
//                                  `looks_up`: the function only forwards to another known function; `behind`: the
//                                  probe is placed in that other function
//     inspect scan FILE            kernels that the file registers: a JSON line per kernel and handle variable, and one
//                                  with totals
//     inspect identity FILE        offset of a communicator's identity (rank, size) in NCCL's structure, or "unknown"
//     inspect name_path FILE       where HIP stores the name of a hipFunction_t: a JSON list of offsets to follow, or
//     []
#include "attach/nccl_identity.hpp"
#include "attach/placement.hpp"
#include "base/error.hpp"
#include "names/driver_objects.hpp"
#include "names/registration_scan.hpp"

#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <iostream>
#include <iterator>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace {

using namespace gpusnoop;

const char* text(bool it_is)
{
    return it_is ? "true" : "false";
}

void print_placement(const Elf& elf)
{
    DispatchTables tables(elf);
    probe_row without_arguments{};
    for (operand& argument : without_arguments.args)
        argument.word = WORD_ZERO;
    using Word = std::istream_iterator<std::string>;
    const std::vector<std::string> words{Word(std::cin), Word()};
    const std::vector<std::string_view> names(words.begin(), words.end());
    for (const Symbol& symbol : elf.functions(names)) {
        const auto [offset, placement] = place(elf, tables, symbol, without_arguments);
        printf(R"({"name":"%s","address":%lu,"delta":%lu,"emulated":%s,"behind":%s,"looks_up":%s})"
               "\n",
               symbol.name.c_str(), symbol.address, placement.delta, text(placement.emulated),
               text(offset != symbol.file_offset), text(tables.target(symbol).has_value()));
    }
}

void print_scan(const Elf& elf)
{
    const Registrations found = scan_registrations(elf);
    const double seconds = static_cast<double>(clock()) / CLOCKS_PER_SEC;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const ElfImage image(elf);
    for (const Registration& r : found.kernels)
        printf("{\"stub\":%lu,\"name\":\"%s\"}\n", r.stub, registered_name(image, r).c_str());
    for (const HandleVariable& h : found.handles)
        printf("{\"variable\":%lu,\"stub\":%lu,\"kept\":%s}\n", h.variable, h.stub, text(keeps_handle(image, h)));
    printf("{\"sites\":%lu,\"read\":%lu,\"kernels\":%zu,\"handles\":%zu,\"cpu_seconds\":%.3f,\"peak_kib\":%ld}\n",
           found.sites, found.read, found.kernels.size(), found.handles.size(), seconds, usage.ru_maxrss);
}

void print_identity(const Elf& elf)
{
    if (const auto offset = identity_offset(elf, host_decoder()))
        printf("%#x\n", *offset);
    else
        puts("unknown");
}

void print_name_path(const Elf& elf)
{
    std::string list;
    for (const uint32_t offset : hip_name_path(elf).value_or(Path()))
        list += (list.empty() ? "" : ", ") + std::to_string(offset);
    printf("[%s]\n", list.c_str());
}

} // namespace

int main(int argc, char** argv)
try {
    const std::string_view what = argc == 3 ? argv[1] : "";
    const auto print = what == "placement"   ? print_placement
                       : what == "scan"      ? print_scan
                       : what == "identity"  ? print_identity
                       : what == "name_path" ? print_name_path
                                             : nullptr;
    if (!print)
        throw Error("usage: inspect placement|scan|identity|name_path FILE");
    print(Elf(Fd(open(argv[2], O_RDONLY | O_CLOEXEC))));
} catch (const Error& error) {
    fprintf(stderr, "inspect: %s\n", error.what());
    return 1;
}
