// SPDX-License-Identifier: Apache-2.0
// Expected registers and stack slots of arguments on x86-64 and arm64, derived by hand from the psABI, AAPCS64 and the
// functions' prototypes. The compiler checks them.
#include "attach/probe_layout.hpp"

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

consteval probe_row x86(const char* text)
{
    return LayoutParser(Machine::x86_64).parse(text).row();
}

constexpr const char* launch_text = "(func, int grid_x, int grid_y, int grid_z, int block_x, int block_y, int block_z, "
                                    "int smem, stream)";
constexpr const char* dim3_text = "(func, dim3 grid, dim3 block, _, smem, stream)";
constexpr const char* set_text = "async set ([dst?, _, _, _], _, [bytes, height, depth], stream)";

consteval bool has(const probe_row& row, argument which, uint8_t word, uint8_t part = PART_WHOLE)
{
    return row.args[which].word == word && row.args[which].part == part;
}

// cuLaunchKernel: x0, w1 to w7, and the stream on the stack.
constexpr probe_row launch = arm64(launch_text);
static_assert(has(launch, ARG_FUNC, 0) && has(launch, ARG_GRID_Z, 3, PART_LOW) &&
              has(launch, ARG_BLOCK_Y, 5, PART_LOW));
static_assert(has(launch, ARG_BLOCK_Z, 6, PART_LOW) && has(launch, ARG_SMEM, 7, PART_LOW));
static_assert(has(launch, ARG_STREAM, s(0)) && launch.block_base == BLOCK_STACK && launch.block_words == 1);
constexpr probe_row launch_x86 = x86(launch_text);
static_assert(has(launch_x86, ARG_BLOCK_Y, 5, PART_LOW) && has(launch_x86, ARG_BLOCK_Z, s(0), PART_LOW));
static_assert(has(launch_x86, ARG_SMEM, s(1), PART_LOW) && has(launch_x86, ARG_STREAM, s(2)));

// cudaLaunchKernel: two dim3 of two registers each; nothing is on the stack.
constexpr probe_row dim3s = arm64(dim3_text);
static_assert(has(dim3s, ARG_GRID_Y, 1, PART_HIGH) && has(dim3s, ARG_BLOCK_Z, 4, PART_LOW));
static_assert(has(dim3s, ARG_SMEM, 6) && has(dim3s, ARG_STREAM, 7) && dim3s.block_base == BLOCK_NONE);
constexpr probe_row dim3s_x86 = x86(dim3_text);
static_assert(has(dim3s_x86, ARG_BLOCK_Z, 4, PART_LOW) && has(dim3s_x86, ARG_SMEM, s(0)));

// If the remaining registers cannot hold a whole structure, the structure is on the stack. On x86-64 the next argument
// then uses the remaining register; on arm64 it does not.
constexpr const char* split_text = "(_, _, _, _, _, _, _, dim3 grid, stream)";
constexpr probe_row split = arm64(split_text);
static_assert(has(split, ARG_GRID_X, s(0), PART_LOW) && has(split, ARG_GRID_Y, s(0), PART_HIGH) &&
              has(split, ARG_GRID_Z, s(1), PART_LOW) && has(split, ARG_STREAM, s(2)));
constexpr probe_row split_x86 = x86("(_, _, _, _, _, dim3 grid, stream)");
static_assert(has(split_x86, ARG_GRID_Z, s(1), PART_LOW) && has(split_x86, ARG_STREAM, 5));

// cudaMemset3DAsync(cudaPitchedPtr, int, cudaExtent, cudaStream_t): on arm64, both structures are passed by pointer,
// and the row reads one of them.
constexpr probe_row set = arm64(set_text);
static_assert(set.block_base == BLOCK_REGISTER + 2 && set.block_words == 3 && has(set, ARG_STREAM, 3));
static_assert(has(set, ARG_BYTES, s(0)) && has(set, ARG_HEIGHT, s(1)) && has(set, ARG_DEPTH, s(2)));
static_assert(has(set, ARG_DESTINATION, WORD_ZERO));
// On x86-64, both structures are passed on the stack.
constexpr probe_row set_x86 = x86(set_text);
static_assert(has(set_x86, ARG_DESTINATION, s(0)) && has(set_x86, ARG_BYTES, s(4)) && has(set_x86, ARG_STREAM, 1));

// cudaMallocMipmappedArray(array, desc, cudaExtent, unsigned levels, flags)
constexpr probe_row array = arm64("array (out, channel_bits, [bytes, height, depth], int levels)");
static_assert(array.block_base == BLOCK_REGISTER + 2 && has(array, ARG_DEPTH, s(2)) &&
              has(array, ARG_LEVELS, 3, PART_LOW));

// ncclPutSignal: eleven argument words; the row reads the last two.
constexpr probe_row signal = arm64("(_, bytes, int format, _, _, _, _, _, _, handle, stream)");
static_assert(has(signal, ARG_HANDLE, s(1)) && has(signal, ARG_STREAM, s(2)) && signal.block_words == 3);

// cuMemcpy3D: the layout of a structure behind a pointer is the same on both machines.
constexpr probe_row copy = arm64("async (*{168 bytes, 176 height, 184 depth}, stream)");
static_assert(copy.block_base == BLOCK_REGISTER && has(copy, ARG_BYTES, s(21)) && has(copy, ARG_STREAM, 1));

} // namespace
