// SPDX-License-Identifier: Apache-2.0
// Withdrawal of warnings that no longer apply. The live screen removes withdrawn warnings; lines on stderr remain.
#pragma once

#include <functional>
#include <string_view>

namespace gpusnoop {

// Withdraws a warning, even if the screen has not shown it yet. message: the text that was passed to warn().
void withdraw(std::string_view message);

// While a WithdrawalRedirect exists, withdrawn messages are passed to `sink`. At most one exists at a time.
class WithdrawalRedirect {
public:
    explicit WithdrawalRedirect(std::function<void(std::string_view)> sink);
    ~WithdrawalRedirect();
    WithdrawalRedirect(const WithdrawalRedirect&) = delete;
    WithdrawalRedirect& operator=(const WithdrawalRedirect&) = delete;
};

} // namespace gpusnoop
