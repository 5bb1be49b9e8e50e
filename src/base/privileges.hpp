// SPDX-License-Identifier: Apache-2.0
// Capabilities of this process, and user accounts.
#pragma once

#include <cstdint>
#include <linux/capability.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace gpusnoop {

// capability: CAP_*.
bool has_capability(int capability);

// Drops all capabilities but these for good; exec as root restores them. False if the kernel refuses.
bool keep_capabilities(std::span<const int> kept);

// An account in /etc/passwd. getpwnam() is not used: it may query the network, and static programs cannot call it.
struct UserAccount {
    std::string name;
    uid_t uid = 0;
    gid_t gid = 0;
    std::string home;
    std::string shell; // empty: /bin/sh
};

// In the order of the file; invalid lines are skipped.
std::vector<UserAccount> parse_accounts(std::string_view passwd);

// Finds an account by name, else by number: a name may consist of digits.
std::optional<UserAccount> find_account(std::string_view passwd, std::string_view name_or_uid);

// The primary group of the account, and those in `group` (/etc/group) that list it as a member.
std::vector<gid_t> groups_of(std::string_view group, const UserAccount& account);

} // namespace gpusnoop
