// SPDX-License-Identifier: Apache-2.0
// Atomic access to words in BPF maps that publish other data (see bpf/base/machine.bpf.h).
#pragma once

namespace gpusnoop {

// Later reads are not moved before this load.
template<class T>
T load_acquire(const volatile T& word)
{
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

// Earlier reads and writes are not moved after this store.
template<class T>
void store_release(volatile T& word, T value)
{
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

} // namespace gpusnoop
