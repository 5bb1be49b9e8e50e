// SPDX-License-Identifier: Apache-2.0
// Offset of the rank and its neighbouring fields in NCCL's private structure ncclComm. The offset differs between
// releases. Public functions return these fields, so their machine code contains the offset.
#pragma once

#include "code/decoder.hpp"
#include "code/elf.hpp"

#include <cstdint>
#include <optional>

namespace gpusnoop {

// Returns the offset of the rank in ncclComm. The number of ranks and the device follow the rank, and 8 bytes that are
// equal in all ranks precede it (bpf/shared/collective.h). Returns nullopt if the layout differs (NCCL before 2.16) or
// cannot be read from the code (RCCL since ROCm 6.3, whose functions jump through a table).
std::optional<uint32_t> identity_offset(const Elf& elf, const Decoder& decoder);

// Returns the offset as encoded in probe cookies, or 0 if it is unknown. The encoded value is the offset / 8, combined
// with COMM_HAS_MAGIC for NCCL 2.21 and later.
uint32_t identity_word(const Elf& elf, const Decoder& decoder);

} // namespace gpusnoop
