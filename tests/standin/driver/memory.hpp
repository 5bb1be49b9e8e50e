// SPDX-License-Identifier: Apache-2.0
// Device memory that whoever has a handle of his own for it allocates and releases here.
#pragma once

#include "state.hpp"

namespace standin {

uintptr_t reserve_addresses(size_t bytes);
int allocate(uintptr_t* out, size_t bytes); // of the current context; counts as one allocation
int release(uintptr_t address);             // counts as one free
void release_all(const Context*);           // the context is gone; counts as nothing

} // namespace standin
