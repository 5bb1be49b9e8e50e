// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/dra.hpp"

#include "base/json_strings.hpp"

namespace gpusnoop {
namespace {

constexpr size_t longest = 128;       // uid
constexpr size_t most_items = 65'536; // of all, so that a file of lies costs no more

struct Entry {
    std::string claim;
    std::set<std::string> pods;
};

// Entries[N].ClaimUID, Entries[N].PodUIDs.<uid>: {}
bool read_entries(std::string_view text, std::map<std::string, Entry>& entries)
{
    size_t count = 0;
    return each_json_string_and_set(text, [&](const JsonPath& at, const std::string& value) {
        if (at.size() < 3 || (at[0] != "Entries" && at[0] != "entries") || ++count > most_items)
            return;
        if (at.size() == 3 && at[2] == "ClaimUID" && value.size() <= longest)
            entries[at[1]].claim = value;
        else if (at.size() == 4 && at[2] == "PodUIDs" && at[3].size() <= longest)
            entries[at[1]].pods.insert(at[3]);
    });
}

} // namespace

// From Kubernetes 1.32 on the entries are a text of JSON in Data, before they stand in the file itself.
std::optional<ByClaim> parse_dra_pods(std::string_view text)
{
    std::string data;
    const bool read = each_json_string(text, [&](const JsonPath& at, const std::string& value) {
        if (at.size() == 1 && at[0] == "Data")
            data = value;
    });
    std::map<std::string, Entry> entries;
    if (!read || !read_entries(data.empty() ? text : std::string_view(data), entries))
        return std::nullopt;
    ByClaim claims;
    for (const auto& [number, entry] : entries)
        if (!entry.claim.empty())
            claims[entry.claim].insert(entry.pods.begin(), entry.pods.end());
    return claims;
}

// VERSION.preparedClaims.<uid>.preparedDevices[N].devices[N]: gpu.info.uuid, or mig.concrete.migUUID
std::optional<ByClaim> parse_dra_devices(std::string_view text)
{
    ByClaim claims;
    size_t count = 0;
    const bool read = each_json_string(text, [&](const JsonPath& at, const std::string& value) {
        if (at.size() < 8 || at[1] != "preparedClaims" || at[3] != "preparedDevices" || at[5] != "devices" ||
            at[2].size() > longest || value.size() > longest)
            return;
        const bool gpu = at.size() == 10 && at[7] == "gpu" && at[8] == "info" && at[9] == "uuid";
        const bool mig = at[7] == "mig" && at.back() == "migUUID";
        if ((gpu || mig) && ++count <= most_items)
            claims[at[2]].insert(value);
    });
    return read ? std::optional(claims) : std::nullopt;
}

} // namespace gpusnoop
