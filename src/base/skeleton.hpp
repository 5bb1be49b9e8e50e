// SPDX-License-Identifier: Apache-2.0
// RAII over the three functions of a generated skeleton.
#pragma once

#include "base/error.hpp"

#include <cerrno>
#include <memory>

namespace gpusnoop {

template<class S>
struct SkeletonDeleter {
    void operator()(S* skeleton) const { S::destroy(skeleton); }
};

template<class S>
using Skeleton = std::unique_ptr<S, SkeletonDeleter<S>>;

// Skeletons declare static open(), load() and destroy() for C++.
template<class S>
Skeleton<S> open_skeleton()
{
    Skeleton<S> skeleton(S::open(nullptr));
    if (!skeleton)
        throw Error("the BPF object cannot be opened: " + errno_text(errno));
    return skeleton;
}

} // namespace gpusnoop
