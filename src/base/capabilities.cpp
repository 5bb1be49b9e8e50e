// SPDX-License-Identifier: Apache-2.0
#include "base/capabilities.hpp"

#include <array>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpusnoop {
namespace {

using Words = std::array<__user_cap_data_struct, 2>;

bool now(Words& words)
{
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    return syscall(SYS_capget, &header, words.data()) == 0;
}

} // namespace

bool has_capability(int capability)
{
    Words all{};
    return now(all) && (all.at(CAP_TO_INDEX(capability)).effective & CAP_TO_MASK(capability)) != 0;
}

bool keep_capabilities(std::span<const int> kept)
{
    Words all{}, some{};
    if (!now(all))
        return false;
    for (const int capability : kept) {
        auto& word = some.at(CAP_TO_INDEX(capability));
        word.permitted |= CAP_TO_MASK(capability) & all.at(CAP_TO_INDEX(capability)).permitted;
        word.effective = word.permitted;
    }
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    return syscall(SYS_capset, &header, some.data()) == 0;
}

} // namespace gpusnoop
