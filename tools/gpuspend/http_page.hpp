// SPDX-License-Identifier: Apache-2.0
// Pages by HTTP, from services of this machine.
#pragma once

#include "base/loopback_question.hpp"

#include <string_view>

namespace gpusnoop {

// What to ask for "http://localhost:9400/metrics", also with 127.0.0.1 or [::1]. Throws UsageError; option: that the
// URL was given by.
LoopbackQuestion::About http_question(std::string_view option, std::string_view url, size_t largest);

// The body of a whole answer; why_not where it is none.
LoopbackAnswer http_body(std::string_view answer);

} // namespace gpusnoop
