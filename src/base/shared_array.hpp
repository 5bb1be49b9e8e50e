// SPDX-License-Identifier: Apache-2.0
// RAII over memory that is shared with the kernel side: the values of a BPF array.
#pragma once

#include "base/error.hpp"

#include <cerrno>
#include <cstddef>
#include <sys/mman.h>
#include <utility>

namespace gpusnoop {

template<class T>
class SharedArray {
public:
    SharedArray(int fd, size_t elements) : fd_(fd) { reach(elements); }
    ~SharedArray() { unmap(); }
    SharedArray(const SharedArray&) = delete;
    SharedArray& operator=(const SharedArray&) = delete;

    // From now on the first so many of the map are here. The others take no memory of the process: the kernel maps all
    // pages at once.
    void reach(size_t elements)
    {
        if (elements * sizeof(T) <= bytes_)
            return;
        unmap();
        const size_t bytes = elements * sizeof(T);
        void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
        if (memory == MAP_FAILED)
            throw Error("a BPF table cannot be mapped: " + errno_text(errno));
        memory_ = memory;
        bytes_ = bytes;
    }

    volatile T& operator[](size_t i) const { return static_cast<volatile T*>(memory_)[i]; }

private:
    void unmap()
    {
        if (bytes_)
            munmap(memory_, std::exchange(bytes_, 0));
    }

    int fd_;
    size_t bytes_ = 0;
    void* memory_ = nullptr;
};

} // namespace gpusnoop
