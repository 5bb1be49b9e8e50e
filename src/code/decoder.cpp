// SPDX-License-Identifier: Apache-2.0
#include "code/decoder.hpp"

namespace gpusnoop {

const Decoder& host_decoder()
{
#if defined(__aarch64__)
    return arm64_decoder();
#else
    return x86_64_decoder();
#endif
}

} // namespace gpusnoop
