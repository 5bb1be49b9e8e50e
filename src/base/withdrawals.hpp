// SPDX-License-Identifier: Apache-2.0
// Withdraws warnings whose condition has ended, where they stay in view: on a screen. What stderr has got stays there.
#pragma once

#include <functional>
#include <string_view>

namespace gpusnoop {

// message: as warn() got it; it need not have been shown yet.
void withdraw(std::string_view message);

// As long as it lives, reader gets what is withdrawn. One at a time.
class WithdrawalsTo {
public:
    explicit WithdrawalsTo(std::function<void(std::string_view)> reader);
    ~WithdrawalsTo();
    WithdrawalsTo(const WithdrawalsTo&) = delete;
    WithdrawalsTo& operator=(const WithdrawalsTo&) = delete;
};

} // namespace gpusnoop
