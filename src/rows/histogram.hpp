// SPDX-License-Identifier: Apache-2.0
// Histogram with fine buckets (bpf/shared/histogram.h): percentiles, and bcc's star histogram.
#pragma once

#include "bpf/shared/histogram.h"

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusnoop {

class Histogram {
public:
    void add(unsigned bucket, uint64_t count);
    void merge(const Histogram& other);
    uint64_t total() const { return total_; }

    // The value below which this share (0..1) of the values lies, as the middle of its bucket; 0 if empty.
    uint64_t percentile(double share) const;

    static uint64_t bucket_low(unsigned bucket);  // smallest value of the bucket
    static uint64_t bucket_high(unsigned bucket); // largest value of the bucket

    // Counts per power of two, as in bcc: slot 0 holds 0 and 1, slot n holds 2^n .. 2^(n+1)-1.
    std::array<uint64_t, 64> octaves() const;

    uint64_t count(unsigned bucket) const { return bucket - first_ < counts_.size() ? counts_[bucket - first_] : 0; }

private:
    uint64_t& at(unsigned bucket);

    // Only from the first non-empty bucket to the last, since most rows have several histograms with few values.
    std::vector<uint64_t> counts_;
    unsigned first_ = 0;
    uint64_t total_ = 0;
};

// Additional information about buckets.
struct BucketNotes {
    std::function<std::string(unsigned octave)> text;                                          // after the bar
    std::function<std::vector<std::pair<std::string_view, uint64_t>>(unsigned bucket)> fields; // added in JSON
};

// bcc's star histogram of the octaves: heading line, one line per octave from the first non-empty one to the last,
// 40 stars for the largest. Empty string for an empty histogram.
std::string star_histogram(const Histogram& histogram, std::string_view unit, const BucketNotes& notes = {});

} // namespace gpusnoop
