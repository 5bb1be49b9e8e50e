// SPDX-License-Identifier: Apache-2.0
#include "rows/histogram.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace gpusnoop {

namespace {

constexpr unsigned sub_buckets = 1U << HISTOGRAM_SUB_BITS;

unsigned bucket_shift(unsigned bucket)
{
    return bucket < 2 * sub_buckets ? 0 : bucket / sub_buckets - 1;
}

} // namespace

uint64_t& Histogram::at(unsigned bucket)
{
    if (bucket >= HISTOGRAM_BUCKETS)
        throw std::out_of_range("no such histogram bucket");
    if (counts_.empty())
        first_ = bucket;
    if (bucket < first_) {
        counts_.insert(counts_.begin(), first_ - bucket, 0);
        first_ = bucket;
    }
    if (bucket - first_ >= counts_.size())
        counts_.resize(bucket - first_ + 1);
    return counts_[bucket - first_];
}

void Histogram::add(unsigned bucket, uint64_t count)
{
    at(bucket) += count;
    total_ += count;
}

void Histogram::merge(const Histogram& other)
{
    for (unsigned i = 0; i < other.counts_.size(); ++i)
        if (other.counts_[i])
            at(other.first_ + i) += other.counts_[i];
    total_ += other.total_;
}

uint64_t Histogram::percentile(double share) const
{
    if (total_ == 0)
        return 0;
    double wanted = std::ceil(share * static_cast<double>(total_));
    uint64_t seen = 0;
    for (unsigned i = 0; i < counts_.size(); ++i) {
        seen += counts_[i];
        if (counts_[i] && (static_cast<double>(seen) >= wanted || seen == total_)) {
            uint64_t low = bucket_low(first_ + i);
            return low + (bucket_high(first_ + i) - low) / 2;
        }
    }
    return 0;
}

uint64_t Histogram::bucket_low(unsigned bucket)
{
    unsigned shift = bucket_shift(bucket);
    return static_cast<uint64_t>(bucket - shift * sub_buckets) << shift;
}

uint64_t Histogram::bucket_high(unsigned bucket)
{
    return bucket_low(bucket) + ((uint64_t{1} << bucket_shift(bucket)) - 1);
}

std::array<uint64_t, 64> Histogram::octaves() const
{
    std::array<uint64_t, 64> result{};
    for (unsigned i = 0; i < counts_.size(); ++i)
        result[log2_floor(bucket_low(first_ + i))] += counts_[i];
    return result;
}

std::string star_histogram(const Histogram& histogram, std::string_view unit, const BucketNotes& notes)
{
    if (histogram.total() == 0)
        return {};
    const auto counts = histogram.octaves();
    auto is_used = [](uint64_t count) { return count != 0; };
    auto first = static_cast<unsigned>(std::find_if(counts.begin(), counts.end(), is_used) - counts.begin());
    auto last = static_cast<unsigned>(counts.rend() - std::find_if(counts.rbegin(), counts.rend(), is_used)) - 1;
    const auto largest = static_cast<double>(*std::max_element(counts.begin(), counts.end()));

    // Uses the column widths of bcc, because scripts and people rely on them: if values reach 2^33, numbers are twice
    // as wide, and bars half as long.
    const bool narrow = last <= 32;
    const int bound = narrow ? 10 : 20;
    const int bar = narrow ? 40 : 20;

    std::string text;
    append_format(text, "{:{}}{:<{}} : count    distribution\n", "", narrow ? 5 : 15, unit, narrow ? 19 : 29);
    for (unsigned octave = first; octave <= last; ++octave) {
        uint64_t low = octave == 0 ? 0 : uint64_t{1} << octave;
        uint64_t high = (uint64_t{2} << octave) - 1; // in the last octave, this wraps to 2^64 - 1
        auto stars = static_cast<size_t>(static_cast<double>(counts[octave]) * bar / largest);
        append_format(text, "{:>{}} -> {:<{}} : {:<8} |{:*<{}}{:{}}|", low, bound, high, bound, counts[octave], "",
                      stars, "", static_cast<size_t>(bar) - stars);
        if (notes.text && counts[octave])
            append_format(text, " {}", notes.text(octave));
        text += '\n';
    }
    return text;
}

} // namespace gpusnoop
