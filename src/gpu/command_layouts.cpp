// SPDX-License-Identifier: Apache-2.0
#include "gpu/command_layouts.hpp"

#include "base/error.hpp"
#include "driver_tables.hpp"

#include <algorithm>
#include <bpf/bpf.h>
#include <charconv>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace gpusnoop {

namespace {

template<class Row>
bool holds(const Row& row, std::optional<DriverVersion> version)
{
    return !version || (row.since <= *version && *version < row.until);
}

// True if the size row applies to every driver version that accepts this ioctl request.
bool always_holds(const SizeRow& size, const LayoutRow& command)
{
    return std::ranges::all_of(layouts, [&](const LayoutRow& other) {
        return other.space != command.space || other.request != command.request ||
               (size.since <= other.since && other.until <= size.until);
    });
}

bool same(command_key a, command_key b)
{
    return a.space == b.space && a.request == b.request;
}

// Keeps the fields on which both layouts agree.
command_layout common(command_layout a, command_layout b)
{
    auto agreed = [](uint16_t one, uint16_t other) { return one == other ? one : uint16_t{OFFSET_NONE}; };
    return {std::min(a.size, b.size), agreed(a.status, b.status), agreed(a.subject, b.subject),
            agreed(a.parameters, b.parameters)};
}

} // namespace

std::optional<DriverVersion> parse_driver_version(std::string_view text)
{
    auto blank = " \t\r\n";
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    text = text.substr(0, text.find_last_not_of(blank) + 1);

    uint32_t parts[3] = {};
    size_t count = 0;
    for (const char *at = text.data(), *end = at + text.size();; ++at) {
        auto [rest, error] = std::from_chars(at, end, parts[count]);
        if (error != std::errc())
            return std::nullopt;
        ++count;
        at = rest;
        if (at == end)
            break;
        if (*at != '.' || count == std::size(parts))
            return std::nullopt;
    }
    if (count < 2)
        return std::nullopt;
    return DriverVersion{parts[0], parts[1], parts[2]};
}

std::vector<std::pair<command_key, command_layout>> command_layouts(std::optional<DriverVersion> version)
{
    std::vector<std::pair<command_key, command_layout>> result;
    for (const LayoutRow& row : layouts) {
        if (!holds(row, version))
            continue;
        command_key key{row.space, row.request};
        auto known = std::ranges::find_if(result, [&](const auto& entry) { return same(entry.first, key); });
        if (known == result.end()) // if the version is unknown, a request may have several rows
            result.emplace_back(key, row.layout);
        else
            known->second = common(known->second, row.layout);
    }
    return result;
}

std::vector<std::pair<size_key, size_layout>> size_layouts(std::optional<DriverVersion> version)
{
    std::vector<std::pair<size_key, size_layout>> result;
    for (const SizeRow& size : sizes) {
        if (!holds(size, version))
            continue;
        for (const LayoutRow& command : layouts) {
            if (command.space != size.space || command.number != size.number || !holds(command, version) ||
                (!version && !always_holds(size, command)))
                continue;
            size_key key{{command.space, command.request}, size.subject, 0};
            auto known = std::ranges::find_if(result, [&](const auto& entry) {
                return same(entry.first.command, key.command) && entry.first.subject == key.subject;
            });
            if (known == result.end())
                result.emplace_back(key, size.layout);
        }
    }
    return result;
}

std::vector<std::pair<command_key, command_layout>> command_heads()
{
    std::vector<std::pair<command_key, command_layout>> result;
    for (const LayoutRow& row : layouts) {
        const command_layout& layout = row.layout;
        if (row.space != SPACE_NVIDIA || layout.subject == OFFSET_NONE)
            continue;
        const int end = std::max(layout.subject + 4, layout.parameters == OFFSET_NONE ? 0 : layout.parameters + 8);
        command_layout head{static_cast<uint16_t>(end), OFFSET_NONE, layout.subject, layout.parameters};
        command_key key{row.space, row.number};
        auto known = std::ranges::find_if(result, [&](const auto& entry) { return same(entry.first, key); });
        if (known == result.end())
            result.emplace_back(key, head);
        else
            known->second = common(known->second, head);
    }
    return result;
}

std::vector<std::pair<size_key, size_layout>> size_heads()
{
    std::vector<std::pair<size_key, size_layout>> result;
    for (const SizeRow& size : sizes) {
        const bool for_all_versions = size.since <= DriverVersion{} && size.until >= layouts[0].until;
        if (size.space == SPACE_NVIDIA && size.layout.in_parameters && for_all_versions)
            result.emplace_back(size_key{{size.space, size.number}, size.subject, 0}, size.layout);
    }
    return result;
}

namespace {

// Returns the version of the nvidia module; nullopt if the module is not loaded.
std::optional<DriverVersion> loaded_driver()
{
    std::ifstream file("/sys/module/nvidia/version");
    std::string line;
    std::getline(file, line);
    return parse_driver_version(line);
}

template<class Key, class Layout>
void fill_map(int map_fd, const std::vector<std::pair<Key, Layout>>& layouts)
{
    for (const auto& [key, layout] : layouts)
        if (bpf_map_update_elem(map_fd, &key, &layout, BPF_ANY))
            throw Error("the BPF maps are too small for the layouts of all driver commands");
}

} // namespace

DriverLayouts::DriverLayouts(int commands_fd, int sizes_fd)
    : commands_fd_(commands_fd), sizes_fd_(sizes_fd), version_(loaded_driver())
{
    fill();
}

void DriverLayouts::refresh()
{
    const auto version = loaded_driver();
    if (!version || version == version_)
        return;
    version_ = version;
    fill();
}

void DriverLayouts::fill() const
{
    fill_map(commands_fd_, command_layouts(version_));
    fill_map(commands_fd_, command_heads());
    fill_map(sizes_fd_, size_layouts(version_));
    fill_map(sizes_fd_, size_heads());
}

} // namespace gpusnoop
