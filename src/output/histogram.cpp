// SPDX-License-Identifier: Apache-2.0
#include "output/histogram.hpp"

#include "util/append_format.hpp"

#include <algorithm>
#include <cmath>

namespace gpusnoop {

namespace {

constexpr unsigned sub_buckets = 1U << HISTOGRAM_SUB_BITS;

unsigned bucket_shift(unsigned bucket)
{
    return bucket < 2 * sub_buckets ? 0 : bucket / sub_buckets - 1;
}

} // namespace

void Histogram::add(unsigned bucket, uint64_t count)
{
    counts_.resize(HISTOGRAM_BUCKETS);
    counts_.at(bucket) += count;
    total_ += count;
}

void Histogram::merge(const Histogram& other)
{
    if (!other.counts_.empty())
        counts_.resize(HISTOGRAM_BUCKETS);
    for (size_t i = 0; i < other.counts_.size(); ++i)
        counts_[i] += other.counts_[i];
    total_ += other.total_;
}

uint64_t Histogram::percentile(double share) const
{
    if (total_ == 0)
        return 0;
    double wanted = std::ceil(share * static_cast<double>(total_));
    uint64_t seen = 0;
    for (unsigned bucket = 0; bucket < counts_.size(); ++bucket) {
        seen += counts_[bucket];
        if (counts_[bucket] && (static_cast<double>(seen) >= wanted || seen == total_)) {
            uint64_t low = bucket_low(bucket);
            return low + (bucket_high(bucket) - low) / 2;
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
    for (unsigned bucket = 0; bucket < counts_.size(); ++bucket)
        result[log2_floor(bucket_low(bucket))] += counts_[bucket];
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

    // bcc's widths, for scripts and eyes that know them: past 2^33 bounds need twice the room, so stars get half.
    const bool narrow = last <= 32;
    const int bound = narrow ? 10 : 20;
    const int bar = narrow ? 40 : 20;

    std::string text;
    append_format(text, "{:{}}{:<{}} : count    distribution\n", "", narrow ? 5 : 15, unit, narrow ? 19 : 29);
    for (unsigned octave = first; octave <= last; ++octave) {
        uint64_t low = octave == 0 ? 0 : uint64_t{1} << octave;
        uint64_t high = (uint64_t{2} << octave) - 1; // the last one wraps to 2^64 - 1
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
