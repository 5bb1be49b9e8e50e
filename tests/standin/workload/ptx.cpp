// SPDX-License-Identifier: Apache-2.0
#include "ptx.hpp"

#include <regex>

namespace workload {
namespace {

constexpr char spin[] = R"({
    .reg .pred %more;
    .reg .u64 %now, %end;
    mov.u64 %now, %globaltimer;
    add.u64 %end, %now, NANOSECONDS;
again:
    mov.u64 %now, %globaltimer;
    setp.lt.u64 %more, %now, %end;
    @%more bra again;
    ret;
}
)";

constexpr char out_of_bounds[] = R"({
    .reg .u32 %value;
    .reg .u64 %address;
    mov.u32 %value, 1;
    mov.u64 %address, 16;
    st.global.u32 [%address], %value;
    ret;
}
)";

constexpr char nothing[] = "{\n    ret;\n}\n";

std::string body(const std::string& kernel)
{
    std::smatch match;
    if (std::regex_match(kernel, match, std::regex("spin_us_([0-9]{1,9})")))
        return std::regex_replace(spin, std::regex("NANOSECONDS"), match.str(1) + "000");
    if (kernel == "out_of_bounds")
        return out_of_bounds;
    return nothing;
}

} // namespace

std::string ptx_of(const std::string& kernel)
{
    if (!std::regex_match(kernel, std::regex("[a-zA-Z][a-zA-Z0-9_$]*|[_$][a-zA-Z0-9_$]+")))
        return {};
    std::string limit = kernel == "too_many_threads" ? ".maxntid 32, 1, 1\n" : "";
    return ".version 5.0\n.target sm_50\n.address_size 64\n.visible .entry " + kernel + "()\n" + limit + body(kernel);
}

} // namespace workload
