// SPDX-License-Identifier: Apache-2.0
#include "base/bpf_object.hpp"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <string_view>

namespace gpusnoop {
namespace {

// Returns the initial contents of a section. libbpf names the section's map after the object and the section:
// "cudalau.rodata".
std::span<std::byte> section_bytes(bpf_object* object, std::string_view section)
{
    bpf_map* map = nullptr;
    bpf_object__for_each_map (map, object) {
        if (!bpf_map__is_internal(map) || !std::string_view(bpf_map__name(map)).ends_with(section))
            continue;
        size_t size = 0;
        auto* const bytes = static_cast<std::byte*>(bpf_map__initial_value(map, &size));
        return {bytes, size};
    }
    return {};
}

} // namespace

bpf_map* BpfObject::map(const std::string& name) const
{
    return bpf_object__find_map_by_name(object_, name.c_str());
}

int BpfObject::fd(const std::string& name) const
{
    return bpf_object__find_map_fd_by_name(object_, name.c_str());
}

void BpfObject::resize(const std::string& name, uint32_t entries) const
{
    if (bpf_map* const found = map(name))
        bpf_map__set_max_entries(found, entries);
}

std::span<std::byte> BpfObject::variable(const std::string& name) const
{
    const btf* const types = bpf_object__btf(object_);
    for (const char* const section : {".rodata", ".bss", ".data"}) {
        const int id = btf__find_by_name_kind(types, section, BTF_KIND_DATASEC);
        if (id < 0)
            continue;
        const btf_type* const type = btf__type_by_id(types, static_cast<__u32>(id));
        const btf_var_secinfo* const variables = btf_var_secinfos(type);
        for (__u32 i = 0; i < btf_vlen(type); i++) {
            const btf_type* const variable = btf__type_by_id(types, variables[i].type);
            if (btf__name_by_offset(types, variable->name_off) == name)
                return section_bytes(object_, section).subspan(variables[i].offset, variables[i].size);
        }
    }
    return {};
}

void* BpfObject::find(const std::string& name, size_t size) const
{
    const std::span<std::byte> bytes = variable(name);
    if (!bytes.empty() && bytes.size() != size)
        throw std::logic_error(name + " has a different size in the BPF object");
    return bytes.data();
}

} // namespace gpusnoop
