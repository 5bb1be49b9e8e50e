// SPDX-License-Identifier: Apache-2.0
#include "tools/cudagap/why.hpp"

#include "tools/cudagap/rules.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

namespace gpusnoop::cudagap {
namespace {

const Column columns[] = {{"PID", "pid", Unit::count, 7},
                          {"COMM", "comm", Unit::text, 15},
                          {"", "tid", Unit::count, 0, false},
                          {"", "reason", Unit::text, 0, false},
                          {"", "block_ended_by", Unit::text, 0, false},
                          {"", "waker_comm", Unit::text, 0, false},
                          {"", "waker_processes", Unit::count, 0, false},
                          {"", "waker_reason", Unit::text, 0, false},
                          {"", "waker_cpu_ns", Unit::count, 0, false},
                          {"", "waker_runq_ns", Unit::count, 0, false},
                          {"", "waker_wall_ns", Unit::count, 0, false},
                          {"", "running", Unit::rate, 0, false},
                          {"", "cpus", Unit::rate, 0, false},
                          {"", "next", Unit::text, 0, false},
                          {"WHY", "why", Unit::text}};

auto launch_time(const ThreadTime& time)
{
    return std::tuple(time.sums.ns[TIME_LAUNCH], time.sums.wall_ns);
}

// Last collective of the thread that made the most NCCL calls; empty if the process made none.
std::string last_collective(const std::vector<ThreadTime>& times, const ImageId& image, std::span<const Probe> probes)
{
    constexpr std::string_view prefix = "nccl";
    uint64_t max_calls = 0;
    uint32_t number = 0;
    for (const ThreadTime& time : times)
        if (time.image == image && time.sums.collectives > max_calls) {
            max_calls = time.sums.collectives;
            number = time.collective;
        }
    if (!number || number > probes.size())
        return {};
    const std::string& symbol = probes[number - 1].symbol;
    return symbol.starts_with(prefix) ? symbol.substr(prefix.size()) : symbol;
}

std::string command(std::string_view next, uint32_t pid)
{
    constexpr std::string_view variable = "PID";
    std::string text(next);
    if (const size_t at = text.find(variable); at != std::string::npos)
        text.replace(at, variable.size(), std::to_string(pid));
    return text;
}

Row row_of(const ThreadTime& time, const GapSigns& signs, Processes& processes)
{
    const uint32_t part = largest_part(signs.parts);
    Row row{uint64_t{time.image.pid}, processes.info(time.image).comm, uint64_t{time.tid},
            std::string(gap_rule(part).name)};
    row.resize(std::size(columns));
    size_t at = 4;
    if (signs.cause && is_wait_for_thread(part))
        row[at] = std::string(block_end_name(signs.cause->by));
    at++;
    if (signs.cause && is_wait_for_thread(part) && signs.cause->by == WOKEN_BY_THREAD) {
        const TimeParts& parts = signs.cause->parts;
        row[at] = signs.cause->comm;
        row[at + 1] = uint64_t{signs.cause->pids.size()};
        if (const uint64_t all = std::accumulate(parts.begin(), parts.end(), uint64_t{0})) {
            row[at + 2] = std::string(gap_rule(largest_part(parts)).name);
            row[at + 3] = parts[TIME_CPU];
            row[at + 4] = parts[TIME_RUNQ];
            row[at + 5] = all;
        }
    }
    if (signs.load) {
        row[at + 6] = signs.load->running;
        row[at + 7] = signs.load->cpus;
    }
    row[at + 8] = command(gap_next(signs), time.image.pid);
    row[at + 9] = gap_words(signs);
    return row;
}

} // namespace

void print_why(Output& output, const std::vector<ThreadTime>& times, const Evidence& evidence, const Context& context,
               uint64_t wall_ns)
{
    std::map<ImageId, const ThreadTime*> threads;
    for (const ThreadTime& time : times)
        if (const ThreadTime*& top = threads[time.image]; !top || launch_time(*top) < launch_time(time))
            top = &time;
    output.begin_table(columns, wall_ns, static_cast<uint64_t>(std::llround(context.seconds * 1e9)));
    for (const auto& [image, time] : threads) {
        const GapSigns signs{time->sums.ns,
                             evidence.causes.worst(time->tid),
                             evidence.causes.load(time->tid),
                             evidence.causes.files(time->tid),
                             last_collective(times, image, evidence.probes),
                             evidence.suspensions.of(static_cast<pid_t>(image.pid), static_cast<pid_t>(time->tid))};
        const Row row = row_of(*time, signs, context.processes);
        std::vector<std::string> lines;
        if (const Circumstances* around = context.around.of(image))
            lines = circumstance_words(*around);
        if (const PeersOf::Result* result = evidence.peers.of(image))
            std::ranges::move(peer_words(time->sums.ns, result->peers), std::back_inserter(lines));
        if (Output* const programs = output.for_programs())
            programs->row(columns, row, {"around", lines});
        lines.push_back("next: " + std::get<std::string>(row[std::size(columns) - 2]));
        if (Output* const people = output.for_people())
            people->row(columns, row, {"around", lines});
    }
}

} // namespace gpusnoop::cudagap
