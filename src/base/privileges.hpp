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

bool has_capability(int capability); // CAP_*

// Drops all capabilities except `kept`. Only an exec as root can restore them. Returns false if the kernel refuses.
bool keep_capabilities(std::span<const int> kept);

// An account in /etc/passwd. getpwnam() is not used: it may query the network, and static programs cannot call it.
struct UserAccount {
    std::string name;
    uid_t uid = 0;
    gid_t gid = 0;
    std::string home;
    std::string shell; // empty: /bin/sh
};

// Returns the accounts in the text of /etc/passwd, in the same order. Skips invalid lines.
std::vector<UserAccount> parse_accounts(std::string_view passwd);

// Finds an account by name or, if there is none with this name, by uid. A name may consist of digits.
std::optional<UserAccount> find_account(std::string_view passwd, std::string_view name_or_uid);

// Returns the account's primary group, and the groups of which it is a member. group: the text of /etc/group.
std::vector<gid_t> groups_of(std::string_view group, const UserAccount& account);

} // namespace gpusnoop
