/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Log2 histogram with 8 sub-buckets per octave, the same on both sides: the middle of a bucket is within 6% of every
 * value in it. Values 0..15 have a bucket each; above, bucket = 8 * octave + 3 bits behind the leading one. */
#ifndef GPUSNOOP_HISTOGRAM_H
#define GPUSNOOP_HISTOGRAM_H

#define HISTOGRAM_SUB_BITS 3
#define HISTOGRAM_BUCKETS 496 /* the bucket of 2^64 - 1 is 495 */

/* floor(log2(v)) for v > 0 without a loop or a clz instruction, which BPF lacks. */
static inline __attribute__((always_inline)) unsigned int log2_floor(unsigned long long v)
{
    unsigned int r = (v > 0xffffffffULL) << 5;
    v >>= r;
    unsigned int s = (v > 0xffff) << 4;
    v >>= s;
    r |= s;
    s = (v > 0xff) << 3;
    v >>= s;
    r |= s;
    s = (v > 0xf) << 2;
    v >>= s;
    r |= s;
    s = (v > 0x3) << 1;
    v >>= s;
    r |= s;
    return r | (unsigned int)(v >> 1);
}

static inline __attribute__((always_inline)) unsigned int histogram_bucket(unsigned long long v)
{
    if (v < 16)
        return (unsigned int)v;
    unsigned int shift = log2_floor(v) - HISTOGRAM_SUB_BITS;
    return (shift << HISTOGRAM_SUB_BITS) + (unsigned int)(v >> shift);
}

#endif
