// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <iterator>
#include <string>

abi::Captured abi_captured;

std::vector<abi::CallSet>& abi::call_sets()
{
    static std::vector<CallSet> sets;
    return sets;
}

using abi::Call;
using abi::CallSet;
using abi::Passed;
using abi::Signature;
using gpusnoop::Probe;

namespace {

constexpr std::string_view argument_names[] = {
    "func",      "stream",    "grid_x",  "grid_y",    "grid_z",   "block_x",   "block_y",  "block_z",
    "smem",      "out",       "name",    "handle",    "count",    "device",    "dst",      "src",
    "bytes",     "height",    "depth",   "direction", "dst_type", "src_type",  "dst_host", "src_host",
    "dst_array", "src_array", "address", "pitch",     "location", "format",    "channels", "channel_bits",
    "levels",    "graph",     "child",   "node_type", "root",     "reduction",
};
static_assert(std::size(argument_names) == ARGUMENTS);

std::string_view base_name(std::string_view symbol)
{
    for (const std::string_view variant : {"_ptsz", "_ptds", "_spt"})
        if (symbol.ends_with(variant))
            symbol.remove_suffix(variant.size());
    return symbol;
}

std::vector<std::string_view> parameter_names(std::string_view parameters)
{
    std::vector<std::string_view> names;
    while (!parameters.empty()) {
        std::string_view parameter = parameters.substr(0, parameters.find(','));
        parameters.remove_prefix(std::min(parameters.size(), parameter.size() + 1));
        names.push_back(parameter.substr(parameter.find_last_of(" *") + 1));
    }
    return names;
}

int argument_called(std::string_view name)
{
    auto found = std::ranges::find(argument_names, name);
    if (found == std::end(argument_names))
        FAIL("signatures.def has a parameter \"" << name << "\" with an unknown name");
    return static_cast<int>(found - argument_names);
}

} // namespace

std::string_view abi::argument_name(int which)
{
    return argument_names[which];
}

bool abi::matches(const Probe& probe, const Signature& signature)
{
    return signature.runtimes == gpusnoop::any_runtime || signature.runtimes == probe.runtimes;
}

const Signature* abi::find(const CallSet& set, const Probe& probe, std::string_view symbol)
{
    for (const Signature& signature : set.signatures)
        if (signature.symbol == symbol && signature.make && matches(probe, signature))
            return &signature;
    return nullptr;
}

const Signature* abi::find(const CallSet& set, const Probe& probe)
{
    return find(set, probe, base_name(probe.symbol));
}

std::map<int, uint64_t> abi::passed_arguments(const Signature& signature, const Call& call, size_t element)
{
    std::map<int, uint64_t> passed;
    std::vector<std::string_view> names = parameter_names(signature.parameters);
    REQUIRE(names.size() == call.parameters.size());
    for (const Call::Field& field : call.fields[element]) {
        if (names.at(field.parameter).starts_with("other"))
            continue;
        const uint64_t base = abi::is_result(field.which) ? reinterpret_cast<uint64_t>(call.memory) : 0;
        passed[field.which] = base + field.value;
    }
    for (size_t i = 0; i < names.size(); i++) {
        auto [form, bytes] = call.parameters[i];
        if (names[i].starts_with("other") || form == Passed::fields || form == Passed::pointer)
            continue;
        uint64_t first = Call::word(i, 0);
        if (names[i] == "grid" || names[i] == "block") {
            REQUIRE((form == Passed::structure && bytes == 12));
            int x = names[i] == "grid" ? ARG_GRID_X : ARG_BLOCK_X;
            passed[x] = static_cast<uint32_t>(first);
            passed[x + 1] = first >> 32;
            passed[x + 2] = static_cast<uint32_t>(Call::word(i, 1));
        } else {
            REQUIRE((form == Passed::scalar && (bytes == 4 || bytes == 8)));
            passed[argument_called(names[i])] = bytes == 4 ? static_cast<uint32_t>(first) : first;
        }
    }
    return passed;
}
