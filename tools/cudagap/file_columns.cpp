// SPDX-License-Identifier: Apache-2.0
// Columns of --files: files that threads wait for, and the disk I/O that they request.
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

// Returns an empty cell for files that are not known.
Cell if_known(const K& k, uint64_t number)
{
    return k.inode || k.device ? Cell(number) : Cell();
}

// Returns an empty cell if the file system is not on a local disk, because its I/O is then not traced.
template<uint64_t G::*bytes>
Cell by_disks(const K& k, const G& g, const C&)
{
    constexpr unsigned minor_bits = 20; // width of the minor number in the kernel's dev_t
    // File systems without a disk have major number 0.
    const bool on_disk = k.device >> minor_bits || g.read_bytes || g.written_bytes;
    return on_disk ? Cell(g.*bytes) : Cell();
}

constexpr Field<C, K, G> fields[] = {
    {{"TIME(s)", "blocked_ns", Unit::seconds, 9},
     always<C>,
     count_of<&G::ns>,
     "Blocked time of all threads of the row."},
    {{"TIMES", "blocks", Unit::count, 7},
     always<C>,
     [](const K&, const G& g, const C&) { return Cell(g.waits.total()); },
     "Number of times that the threads blocked."},
    {{"AVG(us)", "average_ns", Unit::ns_as_us, 9},
     always<C>,
     [](const K&, const G& g, const C&) { return g.waits.total() ? Cell(g.ns / g.waits.total()) : Cell(); },
     "Average duration of a blocked period."},
    {{"p50(us)", "p50_ns", Unit::ns_as_us, 9},
     always<C>,
     wait<50>,
     "Median and 95th percentile of the durations, accurate to 6%."},
    {{"p95(us)", "p95_ns", Unit::ns_as_us, 9}, always<C>, wait<95>},
    {{"READ", "read_bytes", Unit::bytes, 7},
     always<C>,
     by_disks<&G::read_bytes>,
     "Block I/O that the row's threads issued, in bytes, whether they waited for it or not. It includes readahead, "
     "file system metadata, and writes caused by fsync, but not writeback by the kernel. `-` if the file system is not "
     "on a local disk."},
    {{"WRITTEN", "written_bytes", Unit::bytes, 7}, always<C>, by_disks<&G::written_bytes>},
    {{"", "device", Unit::count},
     json_only<C>,
     [](const K& k, const G&, const C&) { return if_known(k, k.device); },
     "The kernel's ids of the file: the device number of its file system (major * 1048576 + minor), and the inode "
     "number."},
    {{"", "inode", Unit::count}, json_only<C>, [](const K& k, const G&, const C&) { return if_known(k, k.inode); }},
    {{"FILE", "file", Unit::text, 4},
     always<C>,
     [](const K& k, const G&, const C&) { return k.file.empty() ? Cell() : Cell(k.file); },
     "Last folder of the file's path (up to 31 bytes) and the file's name (up to 47 bytes). The row `-` sums all "
     "unknown files: see `CAVEATS`."},
};

} // namespace

std::span<const Field<Context, FileKey, FileGroup>> file_fields()
{
    return fields;
}

} // namespace gpusnoop::cudagap
