// SPDX-License-Identifier: Apache-2.0
// Withdrawal of warnings that no longer apply. Only the screen acts on it; stderr keeps its lines.
#pragma once

#include <functional>
#include <string_view>

namespace gpusnoop {

// message: as passed to warn(); it need not have been shown yet.
void withdraw(std::string_view message);

// While it exists, withdrawn messages are passed to `sink`. At most one exists at a time.
class WithdrawalRedirect {
public:
    explicit WithdrawalRedirect(std::function<void(std::string_view)> sink);
    ~WithdrawalRedirect();
    WithdrawalRedirect(const WithdrawalRedirect&) = delete;
    WithdrawalRedirect& operator=(const WithdrawalRedirect&) = delete;
};

} // namespace gpusnoop
