// SPDX-License-Identifier: Apache-2.0
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

// CAP_* is in effect for this process.
bool has_capability(int capability);

// Gives up all but these, of those there are, for good; what it execs as root gets them back. False where the kernel
// refuses that.
bool keep_capabilities(std::span<const int> kept);

// Accounts of users, by the text of /etc/passwd and /etc/group. Not getpwnam(): it asks the network for names, and a
// static program cannot call it.
struct UserAccount {
    std::string name;
    uid_t uid = 0;
    gid_t gid = 0;
    std::string home;
    std::string shell; // empty: /bin/sh
};

// In the order of the file; lines that are none are left out.
std::vector<UserAccount> parse_accounts(std::string_view passwd);

// By name, else by number: a name may consist of digits.
std::optional<UserAccount> find_account(std::string_view passwd, std::string_view name_or_uid);

// The groups that list the user as a member, and the user's own.
std::vector<gid_t> groups_of(std::string_view group, const UserAccount& account);

} // namespace gpusnoop
