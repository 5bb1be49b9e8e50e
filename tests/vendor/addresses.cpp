// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include <cstdio>
#include <dlfcn.h>
#include <elf.h>
#include <set>

namespace {

using GetProcAddress = int (*)(const char* name, void** address, int version, uint64_t flags, int* status);

// True if an exported function begins at this address.
bool is_exported(void* address)
{
    Dl_info info{};
    void* entry = nullptr;
    if (!dladdr1(address, &info, &entry, RTLD_DL_SYMENT) || !entry || info.dli_saddr != address)
        return false;
    const auto* symbol = static_cast<const Elf64_Sym*>(entry);
    return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && ELF64_ST_BIND(symbol->st_info) == STB_GLOBAL;
}

} // namespace

void print_addresses(void* library, const std::vector<std::string>& names)
{
    // cuGetProcAddress (11.3) has no status parameter; the additional argument is harmless.
    void* symbol = dlsym(library, "cuGetProcAddress_v2");
    if (!symbol)
        symbol = dlsym(library, "cuGetProcAddress");
    unsigned long given = 0;
    std::set<std::string> foreign;
    for (const std::string& name : names) {
        for (int version : {2000,  3000,  3020,  4000,  5050,  6050,  7000,  8000,  9000,  10000, 10010, 10020,
                            11000, 11010, 11030, 11040, 11060, 11080, 12000, 12020, 12040, 12080, 13000, 13020}) {
            for (uint64_t flags : {0, 1, 2}) { // default, legacy, per-thread default stream
                void* address = nullptr;
                int status = 0;
                if (!symbol ||
                    reinterpret_cast<GetProcAddress>(symbol)(name.c_str(), &address, version, flags, &status))
                    continue;
                given += address != nullptr;
                if (address && !is_exported(address))
                    foreign.insert(name);
            }
        }
    }
    printf(R"({"type":"addresses","given":%lu,"foreign":[)", given);
    for (const std::string& name : foreign)
        printf("%s\"%s\"", name == *foreign.begin() ? "" : ",", name.c_str());
    printf("]}\n");
}
