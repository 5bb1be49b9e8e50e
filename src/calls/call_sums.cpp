// SPDX-License-Identifier: Apache-2.0
#include "calls/call_sums.hpp"

namespace gpusnoop {
namespace {

call_key of_process(call_key key)
{
    key.subject = 0;
    key.flags &= static_cast<uint8_t>(~CALL_SUBJECT);
    key.tid = 0;
    key.stack = -1;
    key.stream = 0;
    key.caller = 0;
    key.cgroups = {};
    return key;
}

// What is left are sums of one kind.
call_key of_all(const call_key& key)
{
    call_key all{};
    all.kind = key.kind;
    all.layer = key.layer;
    all.flags = key.flags;
    all.device = DEVICE_UNKNOWN;
    all.stack = -1;
    all.result = key.result ? -1 : 0;
    all.duration = BUCKET_NONE;
    switch (part_of(key)) {
    case CallPart::launch:
        all.launch = {BUCKET_NONE, BUCKET_NONE};
        break;
    case CallPart::copy:
        all.copy = {BUCKET_NONE, key.copy.direction, key.copy.memory};
        break;
    case CallPart::memory:
        all.memory = {BUCKET_NONE, key.memory.holding, 0};
        break;
    case CallPart::wait:
    case CallPart::poll:
        all.wait = key.wait;
        break;
    case CallPart::driver:
        all.driver = {0, key.driver.node, key.driver.outcome};
        break;
    case CallPart::graph:
    case CallPart::graph_life:
        break;
    }
    return all;
}

} // namespace

CallDelta& CallSums::row(const call_key& key)
{
    const auto [place, added] = places_.try_emplace(key, rows_.size());
    if (added)
        rows_.push_back({.key = key});
    return rows_[place->second];
}

void CallSums::add(const CallDelta& delta)
{
    if (rows_.size() < limit_ || places_.contains(delta.key))
        return gpusnoop::add(row(delta.key), delta);
    merged_ += delta.count;
    const call_key coarse = of_process(delta.key);
    gpusnoop::add(row(rows_.size() < 2 * limit_ || places_.contains(coarse) ? coarse : of_all(coarse)), delta);
}

void CallSums::merge(const std::set<ImageId>& images)
{
    places_.clear();
    for (const CallDelta& delta : std::exchange(rows_, {})) {
        const bool all = images.contains(delta.key.image);
        if (all)
            merged_ += delta.count;
        gpusnoop::add(row(all ? of_all(delta.key) : delta.key), delta);
    }
}

void CallSums::clear()
{
    rows_.clear();
    places_.clear();
    merged_ = 0;
}

} // namespace gpusnoop
