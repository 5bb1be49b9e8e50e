/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Log2 histogram with 8 sub-buckets per octave, shared by BPF programs and the front end. The middle of a bucket is
 * within 6% of every value in it. Each value from 0 to 15 has its own bucket. The bucket of a higher value is 8 *
 * (floor(log2(value)) - 2) + the 3 bits after the value's leading one bit. */
#ifndef GPUSNOOP_HISTOGRAM_H
#define GPUSNOOP_HISTOGRAM_H

#define HISTOGRAM_SUB_BITS 3
#define HISTOGRAM_BUCKETS 496 /* the bucket of 2^64 - 1 is 495 */

/* Returns 1 for a nonzero value of at most 2^63, else 0. Uses no comparison, because the compiler would turn it into a
 * branch, and the verifier follows each branch. */
static inline __attribute__((always_inline)) unsigned long long is_nonzero(unsigned long long v)
{
    v = 0 - v;
    __asm__("" : "+r"(v));
    return v >> 63;
}

/* Returns 1 if the value is 0, else 0. Valid for all values. */
static inline __attribute__((always_inline)) unsigned long long is_zero(unsigned long long v)
{
    v |= 0 - v;
    __asm__("" : "+r"(v));
    return v >> 63 ^ 1;
}

/* floor(log2(v)) for v > 0 without a loop, a branch or a clz instruction, which BPF lacks. */
static inline __attribute__((always_inline)) unsigned int log2_floor(unsigned long long v)
{
    unsigned long long r = is_nonzero(v >> 32) << 5;
    v >>= r;
    unsigned long long s = is_nonzero(v >> 16) << 4;
    v >>= s;
    r |= s;
    s = is_nonzero(v >> 8) << 3;
    v >>= s;
    r |= s;
    s = is_nonzero(v >> 4) << 2;
    v >>= s;
    r |= s;
    s = is_nonzero(v >> 2) << 1;
    v >>= s;
    r |= s;
    return (unsigned int)(r | v >> 1);
}

static inline __attribute__((always_inline)) unsigned int histogram_bucket(unsigned long long v)
{
    if (v < 16)
        return (unsigned int)v;
    unsigned int shift = log2_floor(v) - HISTOGRAM_SUB_BITS;
    return (shift << HISTOGRAM_SUB_BITS) + (unsigned int)(v >> shift);
}

#endif
