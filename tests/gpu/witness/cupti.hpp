// SPDX-License-Identifier: Apache-2.0
// NVIDIA's profiling library, opened at run time.
#pragma once

#include "cupti_abi.hpp"

#include <string>

namespace witness {

class Cupti : public cupti::Functions {
public:
    // What is missing of it is in missing(); nothing of it may be called then.
    explicit Cupti(const char* path);

    // Why this library cannot be used; empty if it can.
    const std::string& missing() const { return missing_; }
    // What a function answered that did not succeed.
    std::string why(const char* function, cupti::Result) const;

private:
    std::string missing_;
};

} // namespace witness
