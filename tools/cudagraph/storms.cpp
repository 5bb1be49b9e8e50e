// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagraph/storms.hpp"

#include <algorithm>

namespace gpusnoop {

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
