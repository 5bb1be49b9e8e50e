// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ioctls {

void stop_on_signals(); // SIGTERM, SIGINT: the truth is complete nevertheless
bool stopping();

} // namespace ioctls
