// SPDX-License-Identifier: Apache-2.0
// Where NCCL's communicators say which they are. Their structure is private, and another one in each release; but the
// functions that return its fields are public, and their code says where these are.
#pragma once

#include "code/decoder.hpp"
#include "code/elf.hpp"

#include <cstdint>
#include <optional>

namespace gpusnoop {

// Of the rank, behind which there are the number of ranks and the device, and in front of which there is what all ranks
// have in common (bpf/shared/collective.h). nullopt where that does not hold, or cannot be told: of NCCL before 2.16,
// and of RCCL since ROCm 6.3, whose functions jump through a table.
std::optional<uint32_t> identity_offset(const Elf& elf, const Decoder& decoder);

// The same as probes are told it: an eighth of it, and COMM_HAS_MAGIC; 0 where it is not known.
uint32_t identity_word(const Elf& elf, const Decoder& decoder);

} // namespace gpusnoop
