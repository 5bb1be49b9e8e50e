// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagraph/graphs.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace gpusnoop {

static_assert(sizeof(graph_nodes) == 24 && sizeof(graph) == 40 && sizeof(graph_exec) == 64);
static_assert(sizeof(exec_record) == 80);

void Execs::refresh()
{
    execs_of_.clear();
    graphs_of_.clear();
    execs_map_.for_each([&](const Key& key, std::span<const graph_exec> values) {
        const graph_exec& exec = values.front();
        known_.insert_or_assign(exec.number, ExecInfo{key.of, exec});
        execs_of_[key.of]++;
    });
    graphs_map_.for_each([&](const Key& key, std::span<const graph>) { graphs_of_[key.of]++; });
}

void Execs::ended(const exec_record& record)
{
    known_.insert_or_assign(record.exec.number, ExecInfo{record.image, record.exec});
    ended_.push_back(record.exec.number);
}

void Execs::forget_ended()
{
    constexpr size_t kept = 4096; // number of ended graphs to keep, because calls on them may still be in flight
    for (; shown_ && ended_.size() > kept; shown_--) {
        known_.erase(ended_.front());
        ended_.pop_front();
    }
    shown_ = ended_.size();
}

void Execs::forget(const std::set<ImageId>& images)
{
    std::erase_if(known_, [&](const auto& item) { return images.contains(item.second.image); });
}

const ExecInfo* Execs::find(uint64_t number) const
{
    auto found = known_.find(number);
    return found == known_.end() ? nullptr : &found->second;
}

uint64_t Execs::count(const std::map<ImageId, uint64_t>& counts, const std::set<ImageId>& images)
{
    return std::accumulate(images.begin(), images.end(), uint64_t{0}, [&](uint64_t sum, const ImageId& image) {
        auto found = counts.find(image);
        return sum + (found == counts.end() ? 0 : found->second);
    });
}

std::string_view graph_call_name(uint8_t kind)
{
    switch (kind) {
    case KIND_GRAPH_LAUNCH:
        return "launch";
    case KIND_CAPTURE_BEGIN:
        return "begin";
    case KIND_CAPTURE_END:
        return "capture";
    case KIND_GRAPH_NEW:
        return "create";
    case KIND_GRAPH_NODE:
        return "add";
    case KIND_GRAPH_DESTROY:
        return "destroy";
    case KIND_GRAPH_INSTANTIATE:
        return "instantiate";
    case KIND_GRAPH_UPLOAD:
        return "upload";
    case KIND_GRAPH_UPDATE:
        return "update";
    case KIND_GRAPH_SET:
        return "set";
    case KIND_EXEC_DESTROY:
        return "exec-destroy";
    case KIND_TRIM:
        return "trim";
    }
    return "other";
}

std::string_view update_reason(uint8_t reason)
{
    constexpr std::array<std::string_view, 9> reasons = {
        "none",      "error",      "topology",      "node type",
        "function",  "parameters", "not supported", "unsupported function",
        "attributes"};
    return reason < reasons.size() ? reasons[reason] : "untold";
}

uint64_t node_count(const graph_nodes& nodes)
{
    return std::accumulate(std::begin(nodes.count), std::end(nodes.count), uint64_t{0});
}

void GraphGroup::add(const CallDelta& delta, bool of_instantiations)
{
    const call_key& key = delta.key;
    const uint64_t n = delta[CALL_COUNT];
    if (key.result)
        errors += n;
    const bool ok = !key.result;
    auto durations = [&](bool measured) {
        if (!measured)
            return;
        total_ns += delta[CALL_TOTAL_NS];
        max_ns = std::max(max_ns, delta[CALL_MAX_NS]);
        if (key.duration != BUCKET_NONE)
            duration.add(key.duration, n);
    };
    switch (key.kind) {
    case KIND_LAUNCH:
        direct += n;
        break;
    case KIND_GRAPH_LAUNCH:
        durations(!of_instantiations);
        (key.flags & CALL_RECORDED ? captured : launches) += ok ? n : 0;
        kernels += delta[GRAPH_KERNELS];
        unknown += delta[GRAPH_UNKNOWN];
        break;
    case KIND_CAPTURE_END:
        (ok ? captures : failed_captures) += n;
        capture_ns += delta[GRAPH_SETUP_NS];
        break;
    case KIND_GRAPH_INSTANTIATE:
        durations(of_instantiations);
        instantiates += ok ? n : 0;
        instantiate_ns += delta[GRAPH_SETUP_NS];
        break;
    case KIND_GRAPH_UPDATE:
        (ok ? updates : failed_updates) += n;
        if (!ok && delta[CALL_LAST] >= last_refused) {
            reason = key.graph.reason;
            last_refused = delta[CALL_LAST];
        }
        break;
    case KIND_GRAPH_UPLOAD:
        uploads += ok ? n : 0;
        break;
    case KIND_GRAPH_SET:
        sets += ok ? n : 0;
        break;
    case KIND_EXEC_DESTROY:
        destroyed += ok ? n : 0;
        break;
    }
}

void GraphKey::set(const GraphSettings& settings, const call_key& call)
{
    if (settings.exec)
        exec = call.subject;
}

void GraphGroups::add(const CallDelta& delta)
{
    const call_key& key = delta.key;
    if (settings_.exec && !key.subject)
        return; // the call concerns no executable graph
    GraphGroup& group = called(key);
    if (settings_.exec)
        group.exec = execs_->find(key.subject);
    group.add(delta, settings_.time_instantiations);
}

void Storms::add(const ImageId& image, const StormSource& source, uint64_t captures, uint64_t instantiates,
                 uint64_t now_ns)
{
    auto [item, first] = processes_.try_emplace(image);
    Process& process = item->second;
    if (first)
        process.first_ns = now_ns;
    if (now_ns - process.first_ns >= warm_up_ns_)
        process.made.push_back({now_ns, source, captures, instantiates});
}

std::vector<Storm> Storms::drain(uint64_t now_ns)
{
    std::vector<Storm> storms;
    for (auto& [image, process] : processes_) {
        while (!process.made.empty() && process.made.front().time_ns + minute_ns <= now_ns)
            process.made.pop_front();
        Storm storm{.image = image, .source = {}};
        std::map<StormSource, uint64_t> by_source;
        for (const Made& made : process.made) {
            storm.captures += made.captures;
            storm.instantiates += made.instantiates;
            by_source[made.source] += made.captures + made.instantiates;
        }
        const bool quiet = process.reported_ns && process.reported_ns + minute_ns > now_ns;
        if (std::max(storm.captures, storm.instantiates) <= limit_ || quiet)
            continue;
        storm.source = std::ranges::max_element(by_source, {}, [](const auto& item) { return item.second; })->first;
        process.reported_ns = now_ns;
        storms.push_back(storm);
    }
    return storms;
}

void Storms::forget(const std::set<ImageId>& images)
{
    std::erase_if(processes_, [&](const auto& item) { return images.contains(item.first); });
}

} // namespace gpusnoop
