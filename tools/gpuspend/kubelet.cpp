// SPDX-License-Identifier: Apache-2.0
#include "tools/gpuspend/kubelet.hpp"

#include "base/json_strings.hpp"

#include <utility>

namespace gpusnoop {

namespace {

constexpr std::string_view nvidia = "nvidia.com/";
constexpr size_t max_id_length = 128;
constexpr size_t max_ids = 65'536; // limit per file, to bound the cost of a malicious one

// Removes the replica number from the id of a shared device: "GPU-<uuid>::7" is replica 7 of GPU-<uuid>, in the
// notation of k8s-device-plugin 0.20 ("annotated ids").
std::string_view without_replica(std::string_view id)
{
    return id.substr(0, id.find("::"));
}

struct Entry {
    std::string pod_uid, container, resource;
    std::vector<std::string> ids;
};

// Collects strings of Data.PodDeviceEntries[N] and Data.RegisteredDevices.RESOURCE[N].
class CheckpointParser {
public:
    void add(const JsonPath& at, const std::string& value)
    {
        if (at.size() < 3 || at[0] != "Data" || value.size() > max_id_length || count_ >= max_ids)
            return;
        if (at[1] == "RegisteredDevices" && at.size() == 4 && at[2].starts_with(nvidia)) {
            count_++;
            registered_[std::string(without_replica(value))].insert(value);
            devices_.resources.insert(at[2]);
        } else if (at[1] == "PodDeviceEntries" && at.size() >= 4) {
            add_entry(entries_[at[2]], at, value);
        }
    }

    KubeletDevices devices()
    {
        for (const auto& [device, ids] : registered_)
            devices_.parts[device] = ids.size();
        for (auto& [number, entry] : entries_) {
            if (!entry.resource.starts_with(nvidia) || entry.pod_uid.empty())
                continue;
            std::map<std::string, std::set<std::string>> by_device;
            for (const std::string& id : entry.ids)
                by_device[std::string(without_replica(id))].insert(id);
            for (const auto& [device, ids] : by_device)
                devices_.grants.push_back({entry.pod_uid, entry.container, device, ids.size()});
        }
        return std::move(devices_);
    }

private:
    void add_entry(Entry& entry, const JsonPath& at, const std::string& value)
    {
        if (at.size() == 4 && at[3] == "PodUID")
            entry.pod_uid = value;
        else if (at.size() == 4 && at[3] == "ContainerName")
            entry.container = value;
        else if (at.size() == 4 && at[3] == "ResourceName")
            entry.resource = value;
        else if (at[3] == "DeviceIDs" && (at.size() == 5 || at.size() == 6)) { // one list, or one list per NUMA node
            count_++;
            entry.ids.push_back(value);
        }
    }

    KubeletDevices devices_;
    std::map<std::string, std::set<std::string>> registered_;
    std::map<std::string, Entry> entries_; // by index in the JSON array PodDeviceEntries, as text
    size_t count_ = 0;
};

} // namespace

KubeletDevices parse_kubelet_checkpoint(std::string_view text)
{
    CheckpointParser parser;
    const bool read =
        each_json_string(text, [&](const JsonPath& at, const std::string& value) { parser.add(at, value); });
    if (!read)
        return {};
    KubeletDevices devices = parser.devices();
    devices.readable = true;
    return devices;
}

namespace {

constexpr size_t max_uid_length = 128;
constexpr size_t max_items = 65'536; // limit per file, to bound the cost of a malicious one

struct ClaimEntry {
    std::string claim;
    std::set<std::string> pods;
};

// Reads Entries[N].ClaimUID, and the keys of Entries[N].PodUIDs, whose values are {}.
bool read_entries(std::string_view text, std::map<std::string, ClaimEntry>& entries)
{
    size_t count = 0;
    return each_json_string_and_empty_object(text, [&](const JsonPath& at, const std::string& value) {
        if (at.size() < 3 || (at[0] != "Entries" && at[0] != "entries") || ++count > max_items)
            return;
        if (at.size() == 3 && at[2] == "ClaimUID" && value.size() <= max_uid_length)
            entries[at[1]].claim = value;
        else if (at.size() == 4 && at[2] == "PodUIDs" && at[3].size() <= max_uid_length)
            entries[at[1]].pods.insert(at[3]);
    });
}

} // namespace

// Since Kubernetes 1.32, the string Data contains the entries as JSON. In older versions, the file itself has them.
std::optional<ByClaim> parse_dra_pods(std::string_view text)
{
    std::string data;
    const bool read = each_json_string(text, [&](const JsonPath& at, const std::string& value) {
        if (at.size() == 1 && at[0] == "Data")
            data = value;
    });
    std::map<std::string, ClaimEntry> entries;
    if (!read || !read_entries(data.empty() ? text : std::string_view(data), entries))
        return std::nullopt;
    ByClaim claims;
    for (const auto& [number, entry] : entries)
        if (!entry.claim.empty())
            claims[entry.claim].insert(entry.pods.begin(), entry.pods.end());
    return claims;
}

// Reads gpu.info.uuid and mig.concrete.migUUID of VERSION.preparedClaims.<uid>.preparedDevices[N].devices[N].
std::optional<ByClaim> parse_dra_devices(std::string_view text)
{
    ByClaim claims;
    size_t count = 0;
    const bool read = each_json_string(text, [&](const JsonPath& at, const std::string& value) {
        if (at.size() < 8 || at[1] != "preparedClaims" || at[3] != "preparedDevices" || at[5] != "devices" ||
            at[2].size() > max_uid_length || value.size() > max_uid_length)
            return;
        const bool gpu = at.size() == 10 && at[7] == "gpu" && at[8] == "info" && at[9] == "uuid";
        const bool mig = at[7] == "mig" && at.back() == "migUUID";
        if ((gpu || mig) && ++count <= max_items)
            claims[at[2]].insert(value);
    });
    return read ? std::optional(claims) : std::nullopt;
}

} // namespace gpusnoop
