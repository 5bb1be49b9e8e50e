// SPDX-License-Identifier: Apache-2.0
// RAII over memory that is shared with the kernel side: the values of a BPF array.
#pragma once

#include "util/error.hpp"

#include <cerrno>
#include <cstddef>
#include <sys/mman.h>

namespace gpusnoop {

template<class T>
class SharedArray {
public:
    SharedArray(int fd, size_t elements)
        : bytes_(elements * sizeof(T)), memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0))
    {
        if (memory_ == MAP_FAILED)
            throw Error("a BPF table cannot be mapped: " + errno_text(errno));
    }
    ~SharedArray() { munmap(memory_, bytes_); }
    SharedArray(const SharedArray&) = delete;
    SharedArray& operator=(const SharedArray&) = delete;

    volatile T& operator[](size_t i) const { return static_cast<volatile T*>(memory_)[i]; }

private:
    size_t bytes_;
    void* memory_;
};

} // namespace gpusnoop
