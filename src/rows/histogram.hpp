// SPDX-License-Identifier: Apache-2.0
// Histogram with the fine buckets of bpf/shared/histogram.h, its percentiles, and its output in bcc's style.
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

    // Returns a percentile, as the middle of its bucket; 0 if the histogram is empty. share: from 0 to 1; 0.5 is the
    // median.
    uint64_t percentile(double share) const;

    static uint64_t bucket_low(unsigned bucket);  // smallest value of the bucket
    static uint64_t bucket_high(unsigned bucket); // largest value of the bucket

    // Counts per power of two, as in bcc: element 0 counts values 0 and 1, element n counts 2^n .. 2^(n+1)-1.
    std::array<uint64_t, 64> octaves() const;

    uint64_t count(unsigned bucket) const { return bucket - first_ < counts_.size() ? counts_[bucket - first_] : 0; }

private:
    uint64_t& at(unsigned bucket);

    // Contains only the counts from bucket first_ to the last non-empty one. This saves memory, because each row has
    // several histograms, and most contain few values.
    std::vector<uint64_t> counts_;
    unsigned first_ = 0;
    uint64_t total_ = 0;
};

// Additional information about buckets.
struct BucketNotes {
    std::function<std::string(unsigned octave)> text;                                          // printed after the bar
    std::function<std::vector<std::pair<std::string_view, uint64_t>>(unsigned bucket)> fields; // fields added in JSON
};

// Text histogram in bcc's style: a heading, then one line per power of two, from the first non-empty one to the last.
// The longest bar has 40 stars, or 20 if values reach 2^33. Empty string for an empty histogram.
std::string star_histogram(const Histogram& histogram, std::string_view unit, const BucketNotes& notes = {});

} // namespace gpusnoop
