// SPDX-License-Identifier: Apache-2.0
#include "counts.hpp"

namespace witness {
namespace {

template<class Row>
void add(Row& row, size_t index, uint64_t bytes)
{
    Tally& tally = row[index < row.size() ? index : 0]; // index 0 is "unknown" in both tables
    tally.count++;
    tally.bytes += bytes;
}

nlohmann::json json_of(const Tally& tally)
{
    return {{"count", tally.count.load()}, {"bytes", tally.bytes.load()}};
}

// Sums by name, since several values may share a name.
template<class Row, class Names>
nlohmann::json json_of(const Row& row, const Names& names)
{
    std::map<std::string, std::array<uint64_t, 2>> sums;
    for (size_t i = 0; i < row.size(); i++)
        if (row[i].count) {
            sums[names[i]][0] += row[i].count;
            sums[names[i]][1] += row[i].bytes;
        }
    auto out = nlohmann::json::object();
    for (const auto& [name, sum] : sums)
        out[name] = {{"count", sum[0]}, {"bytes", sum[1]}};
    return out;
}

} // namespace

void Counts::call(uint32_t function, const cupti::CallData& data)
{
    if (data.site != cupti::Site::exit)
        return;
    if (function >= calls_.size()) {
        beyond_++;
        return;
    }
    bool failed = data.result && *static_cast<const int*>(data.result);
    calls_[function].all++;
    calls_[function].failed += failed;
    if (!data.symbol || failed)
        return;
    std::lock_guard hold(lock_);
    auto found = launches_.find(std::string_view(data.symbol));
    found == launches_.end() ? launches_[data.symbol] = 1 : found->second++;
}

void Counts::record(const cupti::Record& record)
{
    switch (record.kind) {
    case cupti::Kind::concurrent_kernel:
        kernels_++;
        return;
    case cupti::Kind::memcpy:
    case cupti::Kind::memcpy_between: {
        const auto& copy = reinterpret_cast<const cupti::Copy&>(record);
        return add(copies_, copy.direction, copy.bytes);
    }
    case cupti::Kind::memset: {
        sets_.count++;
        sets_.bytes += reinterpret_cast<const cupti::Set&>(record).bytes;
        return;
    }
    case cupti::Kind::memory: {
        const auto& memory = reinterpret_cast<const cupti::Memory&>(record);
        if (memory.operation == cupti::allocation || memory.operation == cupti::release)
            return add(memory_[memory.operation - cupti::allocation], memory.memory, memory.bytes);
    }
    }
    unknown_++;
}

nlohmann::json Counts::report(const Cupti& cupti) const
{
    auto calls = nlohmann::json::object();
    for (uint32_t function = 0; function < calls_.size(); function++) {
        const char* name = nullptr;
        if (!calls_[function].all)
            continue;
        cupti.GetCallbackName(cupti::Domain::driver, function, &name);
        calls[name ? name : "#" + std::to_string(function)] = {{"count", calls_[function].all.load()},
                                                               {"failed", calls_[function].failed.load()}};
    }
    std::lock_guard hold(lock_);
    return {{"calls", calls},
            {"calls_beyond", beyond_.load()},
            {"launches", launches_},
            {"kernels", kernels_.load()},
            {"copies", json_of(copies_, cupti::directions)},
            {"sets", json_of(sets_)},
            {"allocated", json_of(memory_[0], cupti::memories)},
            {"released", json_of(memory_[1], cupti::memories)},
            {"dropped_records", dropped_.load()},
            {"unknown_records", unknown_.load()}};
}

} // namespace witness
