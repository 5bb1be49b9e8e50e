// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ioctls {

void stop_on_signals(); // SIGTERM, SIGINT: the program still writes a complete truth file
bool stopping();

} // namespace ioctls
