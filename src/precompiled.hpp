// SPDX-License-Identifier: Apache-2.0
// What most files include, compiled once: a third of the compilers' time. No file may rely on it; each includes what it
// needs, which tests/roots/compilers shows, for it compiles without.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>
