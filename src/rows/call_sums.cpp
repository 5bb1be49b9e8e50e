// SPDX-License-Identifier: Apache-2.0
#include "rows/call_sums.hpp"

#include <algorithm>

namespace gpusnoop {

namespace {

constexpr size_t protected_fraction = 16; // the rows of a process with fewer than limit / 16 rows are never merged

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

// Key of the row that combines calls of this kind from all processes.
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

CallDelta& CallSums::row(const call_key& key, bool has_detail)
{
    const auto [place, added] = places_.try_emplace(key, rows_.size());
    if (added) {
        rows_.push_back({.key = key});
        has_detail_.push_back(has_detail);
        if (has_detail) {
            rows_of_[key.image]++;
            detailed_++;
        }
    }
    return rows_[place->second];
}

size_t CallSums::limit_for(std::optional<std::chrono::nanoseconds> interval)
{
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(interval.value_or(std::chrono::hours(1))).count();
    return std::min(usual_limit, rows_per_second * static_cast<size_t>(seconds));
}

// Clears the table, then calls again(delta, has_detail) for each former row. again() must add the calls to a row with
// the same key or a coarser one. has_detail: true if the former row had full detail.
template<class F>
void CallSums::rebuild(F&& again)
{
    const std::vector<CallDelta> rows = std::exchange(rows_, {});
    const std::vector<bool> has_detail = std::exchange(has_detail_, {});
    places_.clear();
    rows_of_.clear();
    detailed_ = 0;
    for (size_t i = 0; i < rows.size(); i++)
        again(rows[i], has_detail[i]);
}

// Makes room for another row with full detail. Returns false if the process is not allowed another such row.
bool CallSums::make_room_for(const ImageId& image)
{
    if (coarse_.contains(image))
        return false;
    if (detailed_ < limit_)
        return true;
    const auto most = std::ranges::max_element(rows_of_, {}, [](const auto& entry) { return entry.second; });
    const auto own = rows_of_.find(image);
    const size_t few = std::max(limit_ / protected_fraction, own != rows_of_.end() ? 2 * own->second : 0);
    if (most == rows_of_.end() || most->second < few) {
        coarse_.insert(image);
        return false;
    }
    const ImageId largest = most->first;
    coarse_.insert(largest);
    rebuild([&](const CallDelta& delta, bool has_detail) {
        if (has_detail && largest == ImageId(delta.key.image))
            add_coarse(delta);
        else
            gpusnoop::add(row(delta.key, has_detail), delta);
    });
    return true;
}

void CallSums::add(const CallDelta& delta)
{
    const auto place = places_.find(delta.key);
    if (place != places_.end())
        gpusnoop::add(rows_[place->second], delta);
    else if (make_room_for(delta.key.image))
        gpusnoop::add(row(delta.key, true), delta);
    else
        add_coarse(delta);
}

void CallSums::add_coarse(const CallDelta& delta)
{
    merged_ += delta[CALL_COUNT];
    const call_key coarse = of_process(delta.key);
    const bool room = rows_.size() - detailed_ < limit_ || places_.contains(coarse);
    const call_key key = room ? coarse : of_all(coarse);
    gpusnoop::add(row(key, false), delta);
    if (has_detail_[places_.at(key)]) { // the row had full detail; it is coarse from now on
        has_detail_[places_.at(key)] = false;
        rows_of_[key.image]--;
        detailed_--;
    }
}

void CallSums::merge(const std::set<ImageId>& images)
{
    rebuild([&](const CallDelta& delta, bool has_detail) {
        const bool all = images.contains(delta.key.image);
        if (all && has_detail)
            merged_ += delta[CALL_COUNT];
        gpusnoop::add(row(all ? of_all(delta.key) : delta.key, !all && has_detail), delta);
    });
}

void CallSums::clear()
{
    rows_.clear();
    places_.clear();
    rows_of_.clear();
    has_detail_.clear();
    coarse_.clear();
    detailed_ = 0;
    merged_ = 0;
}

} // namespace gpusnoop
