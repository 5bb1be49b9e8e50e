// SPDX-License-Identifier: Apache-2.0
// CUPTI, opened at run time.
#pragma once

#include "cupti_abi.hpp"

#include <string>

namespace witness {

class Cupti : public cupti::Functions {
public:
    // Opens the library. Its functions may only be called if missing() is empty.
    explicit Cupti(const char* path);

    // Why the library cannot be used; empty if it can.
    const std::string& missing() const { return missing_; }
    // Error message for a failed function.
    std::string message(const char* function, cupti::Result) const;

private:
    std::string missing_;
};

} // namespace witness
