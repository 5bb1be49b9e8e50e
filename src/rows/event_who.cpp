// SPDX-License-Identifier: Apache-2.0
#include "rows/event_who.hpp"

namespace gpusnoop {
namespace {

constexpr uint64_t refill_after = 4096; // lines; names may have become known

} // namespace

void EventWho::add_columns(std::vector<Column>& columns, bool in_text)
{
    const auto add = [&](Column column, std::string_view about) {
        column.about = about;
        columns.push_back(column);
    };
    add({"NSPID", "ns_pid", Unit::count, 7, in_text, true}, about_ns_pid);
    add({"OWNER", "", Unit::text, 40, in_text, false}, about_owner);
    for (const OwnerKey& each : owner_keys)
        add({"", each.key, each.unit, 0, false}, &each == owner_keys ? about_owner_keys : "");
}

size_t EventWho::fill(Row& row, size_t at, const ImageId& image, const cgroups& ids)
{
    const size_t end = at + 2 + std::size(owner_keys);
    if (image_ == image && ids_.v2 == ids.v2 && ids_.v1 == ids.v1 && ++filled_ < refill_after)
        return end;
    image_ = image;
    ids_ = ids;
    filled_ = 0;
    const uint64_t ns_pid = processes_.info(image).ns_pid;
    const Owner& owner = processes_.owner(image, ids);
    row[at++] = ns_pid ? Cell(ns_pid) : Cell();
    row[at++] = owner_cell(owner, OwnerPart::text);
    for (const OwnerKey& each : owner_keys)
        row[at++] = owner_cell(owner, each.part);
    return end;
}

} // namespace gpusnoop
