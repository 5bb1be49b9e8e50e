// SPDX-License-Identifier: Apache-2.0
// Rows of x86-64 as arm64 has them. Expected are words by hand, from AAPCS64 and the functions' prototypes.
#include "probes/probe_layout.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace gpusnoop;

namespace {

constexpr uint8_t s(unsigned slot)
{
    return static_cast<uint8_t>(WORD_BLOCK + slot);
}

consteval probe_row arm64(const char* text)
{
    return LayoutParser(Machine::arm64).parse(text).row();
}

consteval bool has(const probe_row& row, argument which, uint8_t word, uint8_t part = PART_WHOLE)
{
    return row.args[which].word == word && row.args[which].part == part;
}

// cuLaunchKernel: x0, w1 to w7, and the stream on the stack.
constexpr probe_row launch = arm64("func:rdi grid:rsi.l,rdx.l,rcx.l block:r8.l,r9.l,s0.l smem:s1.l stream:s2");
static_assert(has(launch, ARG_FUNC, 0) && has(launch, ARG_GRID_Z, 3, PART_LOW) &&
              has(launch, ARG_BLOCK_Y, 5, PART_LOW));
static_assert(has(launch, ARG_BLOCK_Z, 6, PART_LOW) && has(launch, ARG_SMEM, 7, PART_LOW));
static_assert(has(launch, ARG_STREAM, s(0)) && launch.block_base == BLOCK_STACK && launch.block_words == 1);

// cudaLaunchKernel: two dim3 of two registers each; nothing is on the stack.
constexpr probe_row dim3s = arm64("func:rdi grid:rsi.l,rsi.h,rdx.l block:rcx.l,rcx.h,r8.l smem:s0 stream:s1");
static_assert(has(dim3s, ARG_GRID_Y, 1, PART_HIGH) && has(dim3s, ARG_BLOCK_Z, 4, PART_LOW));
static_assert(has(dim3s, ARG_SMEM, 6) && has(dim3s, ARG_STREAM, 7) && dim3s.block_base == BLOCK_NONE);

// cudaMemset3DAsync(cudaPitchedPtr, int, cudaExtent, cudaStream_t): both structures by pointer, of which one is read.
constexpr probe_row set = arm64("large:0x4,2x3 async set bytes:s4 height:s5 depth:s6 dst:s0 stream:rsi");
static_assert(set.block_base == BLOCK_REGISTER + 2 && set.block_words == 3 && has(set, ARG_STREAM, 3));
static_assert(has(set, ARG_BYTES, s(0)) && has(set, ARG_HEIGHT, s(1)) && has(set, ARG_DEPTH, s(2)));
static_assert(has(set, ARG_DESTINATION, WORD_ZERO));

// cudaMallocMipmappedArray(array, desc, cudaExtent, unsigned levels, flags)
constexpr probe_row array = arm64("large:2x3 array out:rdi channel_bits:rsi bytes:s0 height:s1 depth:s2 levels:rdx.l");
static_assert(array.block_base == BLOCK_REGISTER + 2 && has(array, ARG_DEPTH, s(2)) &&
              has(array, ARG_LEVELS, 3, PART_LOW));

// ncclPutSignal: eleven words, the last two of which are read.
constexpr probe_row signal = arm64("bytes:rsi format:rdx.l handle:s3 stream:s4");
static_assert(has(signal, ARG_HANDLE, s(1)) && has(signal, ARG_STREAM, s(2)) && signal.block_words == 3);

// cuMemcpy3D: a structure behind a pointer is where it was.
constexpr probe_row copy = arm64("async bytes:rdi[168] height:rdi[176] depth:rdi[184] stream:rsi");
static_assert(copy.block_base == BLOCK_REGISTER && has(copy, ARG_BYTES, s(21)) && has(copy, ARG_STREAM, 1));

} // namespace

TEST_CASE("arguments on arm64", "[abi]")
{
    SUCCEED("compiled");
}
