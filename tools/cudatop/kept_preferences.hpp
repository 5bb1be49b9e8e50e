// SPDX-License-Identifier: Apache-2.0
// Screen settings saved by earlier runs: gpusnoop/cudatop.json in the user's configuration folder.
#pragma once

#include "base/own_file.hpp"
#include "screen/preferences.hpp"

#include <optional>
#include <string>

namespace gpusnoop::cudatop {

class KeptPreferences {
public:
    KeptPreferences(std::optional<OwnFile> file = OwnFile::of_settings("cudatop.json"));

    const Preferences& preferences() const { return preferences_; } // empty if the file cannot be used
    // A sentence that explains why the file is ignored; empty if the file is used.
    const std::string& why_ignored() const { return why_ignored_; }
    void warn_if_ignored() const;

    // Saves the earlier preferences together with the settings that the user chose in this run. Prints a warning if
    // that fails. Never overwrites an ignored file, because a user may have written it by hand.
    void keep(const Preferences& chosen) const;

private:
    std::optional<OwnFile> file_;
    Preferences preferences_;
    std::string why_ignored_;
};

} // namespace gpusnoop::cudatop
