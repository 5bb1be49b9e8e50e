// SPDX-License-Identifier: Apache-2.0
#include "rows/histogram.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>
#include <vector>

using gpusnoop::Histogram;

namespace {

// Returns values in ascending order: 0 to 100000, then every power of two with its neighbours, up to 2^64 - 1.
std::vector<uint64_t> test_values()
{
    std::vector<uint64_t> values;
    for (uint64_t v = 0; v <= 100000; ++v)
        values.push_back(v);
    for (unsigned bit = 17; bit < 64; ++bit)
        for (uint64_t v : {(uint64_t{1} << bit) - 1, uint64_t{1} << bit, (uint64_t{1} << bit) + 1})
            values.push_back(v);
    values.push_back(UINT64_MAX - 1);
    values.push_back(UINT64_MAX);
    return values;
}

Histogram of_octaves(const std::vector<std::pair<unsigned, uint64_t>>& counts)
{
    Histogram histogram;
    for (auto [octave, count] : counts)
        histogram.add(histogram_bucket(octave == 0 ? 0 : uint64_t{1} << octave), count);
    return histogram;
}

} // namespace

TEST_CASE("a bucket contains its value, and its middle differs from it by at most 1/16", "[histogram]")
{
    unsigned before = 0;
    for (uint64_t v : test_values()) {
        unsigned bucket = histogram_bucket(v);
        uint64_t low = Histogram::bucket_low(bucket);
        uint64_t high = Histogram::bucket_high(bucket);
        uint64_t middle = low + (high - low) / 2;
        uint64_t off = middle > v ? middle - v : v - middle;
        bool holds = bucket < HISTOGRAM_BUCKETS && bucket >= before && low <= v && v <= high &&
                     static_cast<double>(off) <= 0.0625 * static_cast<double>(v);
        if (!holds) {
            CAPTURE(v, bucket, before, low, high);
            FAIL("the bucket does not fit the value");
        }
        before = bucket;
    }
    CHECK(before == HISTOGRAM_BUCKETS - 1);
}

TEST_CASE("buckets leave no gap", "[histogram]")
{
    CHECK(Histogram::bucket_low(0) == 0);
    for (unsigned bucket = 0; bucket + 1 < HISTOGRAM_BUCKETS; ++bucket)
        CHECK(Histogram::bucket_high(bucket) + 1 == Histogram::bucket_low(bucket + 1));
    CHECK(Histogram::bucket_high(HISTOGRAM_BUCKETS - 1) == UINT64_MAX);
}

TEST_CASE("octaves have the same bounds as bcc's slots", "[histogram]")
{
    for (uint64_t v : test_values()) {
        Histogram histogram;
        histogram.add(histogram_bucket(v), 3);
        auto slot = v < 2 ? 0U : static_cast<unsigned>(63 - __builtin_clzll(v));
        if (histogram.octaves()[slot] != 3) {
            CAPTURE(v, slot);
            FAIL("wrong octave");
        }
    }
}

TEST_CASE("a percentile is in the bucket of the exact percentile", "[histogram]")
{
    std::mt19937_64 random(1);
    for (size_t size : {1, 2, 3, 10, 1000, 20000}) {
        Histogram histogram;
        std::vector<uint64_t> samples;
        for (size_t i = 0; i < size; ++i)
            samples.push_back(random() >> (random() % 60));
        for (uint64_t v : samples)
            histogram.add(histogram_bucket(v), 1);
        std::sort(samples.begin(), samples.end());
        for (double share : {0.0, 0.01, 0.5, 0.95, 0.99, 1.0}) {
            auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(size)));
            uint64_t sample = samples[rank ? rank - 1 : 0];
            CAPTURE(size, share, sample);
            CHECK(histogram_bucket(histogram.percentile(share)) == histogram_bucket(sample));
        }
    }
}

TEST_CASE("an empty histogram has no percentiles and no stars", "[histogram]")
{
    Histogram histogram;
    CHECK(histogram.percentile(0.5) == 0);
    CHECK(gpusnoop::star_histogram(histogram, "usecs").empty());
}

TEST_CASE("merge adds bucket by bucket", "[histogram]")
{
    Histogram a, b;
    a.add(3, 1);
    b.add(3, 2);
    b.add(495, 5);
    a.merge(b);
    CHECK(a.total() == 8);
    CHECK(a.count(3) == 3);
    CHECK(a.count(495) == 5);
}

TEST_CASE("star_histogram() prints bcc's format", "[histogram]")
{
    // The example in runqlat's documentation.
    auto histogram = of_octaves({{0, 72}, {1, 93}, {2, 98}, {3, 96}, {4, 38}, {5, 4}, {6, 5}, {7, 6}, {11, 1}});
    CHECK(gpusnoop::star_histogram(histogram, "usecs") ==
          "     usecs               : count    distribution\n"
          "         0 -> 1          : 72       |*****************************           |\n"
          "         2 -> 3          : 93       |*************************************   |\n"
          "         4 -> 7          : 98       |****************************************|\n"
          "         8 -> 15         : 96       |*************************************** |\n"
          "        16 -> 31         : 38       |***************                         |\n"
          "        32 -> 63         : 4        |*                                       |\n"
          "        64 -> 127        : 5        |**                                      |\n"
          "       128 -> 255        : 6        |**                                      |\n"
          "       256 -> 511        : 0        |                                        |\n"
          "       512 -> 1023       : 0        |                                        |\n"
          "      1024 -> 2047       : 0        |                                        |\n"
          "      2048 -> 4095       : 1        |                                        |\n");
}

TEST_CASE("charts start at the first non-empty octave, and are wider from 2^33 on", "[histogram]")
{
    CHECK(gpusnoop::star_histogram(of_octaves({{3, 3}, {5, 1}}), "usecs") ==
          "     usecs               : count    distribution\n"
          "         8 -> 15         : 3        |****************************************|\n"
          "        16 -> 31         : 0        |                                        |\n"
          "        32 -> 63         : 1        |*************                           |\n");
    CHECK(gpusnoop::star_histogram(of_octaves({{32, 2}}), "bytes") ==
          "     bytes               : count    distribution\n"
          "4294967296 -> 8589934591 : 2        |****************************************|\n");
    CHECK(gpusnoop::star_histogram(of_octaves({{33, 2}, {34, 1}}), "bytes") ==
          "               bytes                         : count    distribution\n"
          "          8589934592 -> 17179869183          : 2        |********************|\n"
          "         17179869184 -> 34359738367          : 1        |**********          |\n");
    CHECK(gpusnoop::star_histogram(of_octaves({{63, UINT64_MAX}}), "nsecs") ==
          "               nsecs                         : count    distribution\n"
          " 9223372036854775808 -> 18446744073709551615 : 18446744073709551615 |********************|\n");
}
