// SPDX-License-Identifier: Apache-2.0
#include "base/privileges.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpusnoop {

namespace {

using CapabilitySets = std::array<__user_cap_data_struct, 2>; // 32 capabilities each

bool read_sets(CapabilitySets& sets)
{
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    return syscall(SYS_capget, &header, sets.data()) == 0;
}

} // namespace

bool has_capability(int capability)
{
    CapabilitySets all{};
    return read_sets(all) && (all.at(CAP_TO_INDEX(capability)).effective & CAP_TO_MASK(capability)) != 0;
}

bool keep_capabilities(std::span<const int> kept)
{
    CapabilitySets all{}, reduced{};
    if (!read_sets(all))
        return false;
    for (const int capability : kept) {
        auto& word = reduced.at(CAP_TO_INDEX(capability));
        word.permitted |= CAP_TO_MASK(capability) & all.at(CAP_TO_INDEX(capability)).permitted;
        word.effective = word.permitted;
    }
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    return syscall(SYS_capset, &header, reduced.data()) == 0;
}

std::vector<UserAccount> parse_accounts(std::string_view passwd)
{
    std::vector<UserAccount> accounts;
    while (!passwd.empty()) {
        std::string_view line = next_part(passwd, '\n'); // name:password:uid:gid:comment:home:shell
        const std::string_view name = next_part(line, ':');
        next_part(line, ':');
        const auto uid = parse_number<uint32_t>(next_part(line, ':')),
                   gid = parse_number<uint32_t>(next_part(line, ':'));
        next_part(line, ':');
        const std::string_view home = next_part(line, ':');
        if (!name.empty() && uid && gid)
            accounts.push_back({std::string(name), *uid, *gid, std::string(home), std::string(line)});
    }
    return accounts;
}

std::optional<UserAccount> find_account(std::string_view passwd, std::string_view name_or_uid)
{
    const std::vector<UserAccount> accounts = parse_accounts(passwd);
    auto found = std::ranges::find(accounts, name_or_uid, &UserAccount::name);
    if (const auto uid = parse_number<uint32_t>(name_or_uid); found == accounts.end() && uid)
        found = std::ranges::find(accounts, *uid, &UserAccount::uid);
    return found == accounts.end() ? std::nullopt : std::optional(*found);
}

std::vector<gid_t> groups_of(std::string_view group, const UserAccount& account)
{
    std::vector<gid_t> groups{account.gid};
    while (!group.empty()) {
        std::string_view line = next_part(group, '\n'); // name:password:gid:member,member
        next_part(line, ':');
        next_part(line, ':');
        const auto gid = parse_number<uint32_t>(next_part(line, ':'));
        while (gid && !line.empty())
            if (next_part(line, ',') == account.name && std::ranges::find(groups, *gid) == groups.end())
                groups.push_back(*gid);
    }
    return groups;
}

} // namespace gpusnoop
