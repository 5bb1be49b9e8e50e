// SPDX-License-Identifier: Apache-2.0
// Offset of the rank and its neighbouring fields in ncclComm. The structure is private and differs between releases,
// but public functions return its fields, and their machine code contains the offsets.
#pragma once

#include "code/decoder.hpp"
#include "code/elf.hpp"

#include <cstdint>
#include <optional>

namespace gpusnoop {

// Offset of the rank. The number of ranks and the device follow it, and 8 bytes that are equal in all ranks
// precede it (bpf/shared/collective.h). nullopt if the layout differs or is unknown: NCCL before 2.16, and RCCL since
// ROCm 6.3, whose functions jump through a table.
std::optional<uint32_t> identity_offset(const Elf& elf, const Decoder& decoder);

// The offset as encoded in probe cookies: divided by 8, with COMM_HAS_MAGIC since NCCL 2.21. 0 if unknown.
uint32_t identity_word(const Elf& elf, const Decoder& decoder);

} // namespace gpusnoop
