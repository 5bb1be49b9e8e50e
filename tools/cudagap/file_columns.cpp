// SPDX-License-Identifier: Apache-2.0
// Which files threads wait for, and what disks are asked for: a row for each file, of each process or whatever else
// rows are by.
#include "tools/cudagap/columns.hpp"

namespace gpusnoop::cudagap {
namespace {

using K = FileKey;
using G = FileGroup;
using C = Context;

template<int percent>
Cell wait(const K&, const G& g, const C&)
{
    return g.waits.total() ? Cell(g.waits.percentile(percent / 100.0)) : Cell();
}

// Of files that are known.
Cell if_known(const K& k, uint64_t number)
{
    return k.inode || k.device ? Cell(number) : Cell();
}

// Where a file system is not on a disk of this machine, none is asked, and nobody knows how much was moved.
template<uint64_t G::*bytes>
Cell by_disks(const K& k, const G& g, const C&)
{
    constexpr unsigned minor_bits = 20; // of the kernel's dev_t; a device without a disk has the major number 0
    const bool on_disk = k.device >> minor_bits || g.read_bytes || g.written_bytes;
    return on_disk ? Cell(g.*bytes) : Cell();
}

const Field<C, K, G> fields[] = {
    {{"TIME(s)", "blocked_ns", Unit::seconds, 9}, always<C>, [](const K&, const G& g, const C&) { return Cell(g.ns); }},
    {{"TIMES", "blocks", Unit::count, 7},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.waits.total()); }},
    {{"AVG(us)", "average_ns", Unit::ns_as_us, 9},
     always<C>,
     [](const K&, const G& g, const C&) { return g.waits.total() ? Cell(g.ns / g.waits.total()) : Cell(); }},
    {{"p50(us)", "p50_ns", Unit::ns_as_us, 9}, always<C>, wait<50>},
    {{"p95(us)", "p95_ns", Unit::ns_as_us, 9}, always<C>, wait<95>},
    {{"READ", "read_bytes", Unit::bytes, 7}, always<C>, by_disks<&G::read_bytes>},
    {{"WRITTEN", "written_bytes", Unit::bytes, 7}, always<C>, by_disks<&G::written_bytes>},
    {{"", "device", Unit::count}, json_only<C>, [](const K& k, const G&, const C&) { return if_known(k, k.device); }},
    {{"", "inode", Unit::count}, json_only<C>, [](const K& k, const G&, const C&) { return if_known(k, k.inode); }},
    {{"FILE", "file", Unit::text, 4},
     always<C>,
     [](const K& k, const G&, const C&) { return k.file.empty() ? Cell() : Cell(k.file); }},
};

} // namespace

std::vector<Column> columns_of_files()
{
    std::vector<Column> all;
    for (const auto& field : fields)
        all.push_back(field.column);
    return all;
}

void check_file_fields(const Options& options, const std::string& sort)
{
    gpusnoop::check_fields<K, G, C>(fields, options, sort, {});
}

void print_files(Output& output, const std::map<FileKey, FileGroup>& groups, const Context& context, uint64_t wall_ns)
{
    print_table<K, G, C>(
        output, fields, groups, context, wall_ns, context.settings.sort,
        [](const G& group) { return static_cast<double>(group.ns); },
        [](const K&, const G&) { return std::vector<std::string>(); });
}

} // namespace gpusnoop::cudagap
