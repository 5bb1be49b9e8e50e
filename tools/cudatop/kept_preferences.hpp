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
    const std::string& why_ignored() const { return why_ignored_; } // a sentence; empty: the file is used
    void warn_if_ignored() const;

    // Saves the preferences with the changes of this run; prints a warning if that fails. An ignored file is not
    // overwritten, because it may have been written by hand.
    void keep(const Preferences& chosen) const;

private:
    std::optional<OwnFile> file_;
    Preferences preferences_;
    std::string why_ignored_;
};

} // namespace gpusnoop::cudatop
