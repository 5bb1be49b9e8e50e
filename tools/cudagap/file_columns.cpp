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

constexpr Field<C, K, G> fields[] = {
    {{"TIME(s)", "blocked_ns", Unit::seconds, 9},
     always<C>,
     count_of<&G::ns>,
     "For how long, of all threads of the row."},
    {{"TIMES", "blocks", Unit::count, 7},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.waits.total()); },
     "How often."},
    {{"AVG(us)", "average_ns", Unit::ns_as_us, 9},
     always<C>,
     [](const K&, const G& g, const C&) { return g.waits.total() ? Cell(g.ns / g.waits.total()) : Cell(); },
     "How long one was on average."},
    {{"p50(us)", "p50_ns", Unit::ns_as_us, 9},
     always<C>,
     wait<50>,
     "Half and 95% of them were this long or shorter, to 6%."},
    {{"p95(us)", "p95_ns", Unit::ns_as_us, 9}, always<C>, wait<95>},
    {{"READ", "read_bytes", Unit::bytes, 7},
     always<C>,
     by_disks<&G::read_bytes>,
     "What the block layer was asked for in the name of these threads, whether they waited for it or not: also what is "
     "read ahead, and what a file system reads and writes about the file. What they write into memory, and the kernel "
     "writes back later, is in no thread's name; what they wait for with fsync is. `-` if the file system is not on a "
     "disk of this machine."},
    {{"WRITTEN", "written_bytes", Unit::bytes, 7}, always<C>, by_disks<&G::written_bytes>},
    {{"", "device", Unit::count},
     json_only<C>,
     [](const K& k, const G&, const C&) { return if_known(k, k.device); },
     "The file, as the kernel knows it: the number of its file system (major * 1048576 + minor), and its own."},
    {{"", "inode", Unit::count}, json_only<C>, [](const K& k, const G&, const C&) { return if_known(k, k.inode); }},
    {{"FILE", "file", Unit::text, 4},
     always<C>,
     [](const K& k, const G&, const C&) { return k.file.empty() ? Cell() : Cell(k.file); },
     "Its last folder and its name, as much of it as the kernel side keeps (31 and 47 bytes). `-` are all that have no "
     "file that is known: see `CAVEATS`."},
};

} // namespace

std::span<const Field<Context, FileKey, FileGroup>> file_fields()
{
    return fields;
}

} // namespace gpusnoop::cudagap
