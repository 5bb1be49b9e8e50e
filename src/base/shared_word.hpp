// SPDX-License-Identifier: Apache-2.0
// Order of accesses to words of BPF maps that publish other data (bpf/base/machine.bpf.h).
#pragma once

namespace gpusnoop {

// The word is loaded before everything that is read later.
template<class T>
T load_acquire(const volatile T& word)
{
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

// The word is stored after everything that was read or written earlier.
template<class T>
void store_release(volatile T& word, T value)
{
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

} // namespace gpusnoop
