// SPDX-License-Identifier: Apache-2.0
// What keys chose on the screens of earlier runs: gpusnoop/cudatop.json in the user's folder of settings.
#pragma once

#include "base/own_file.hpp"
#include "screen/preferences.hpp"

#include <optional>
#include <string>

namespace gpusnoop::cudatop {

class KeptPreferences {
public:
    KeptPreferences(std::optional<OwnFile> file = OwnFile::of_settings("cudatop.json"));

    const Preferences& preferences() const { return preferences_; } // empty where they cannot be used
    const std::string& why_ignored() const { return why_ignored_; } // a sentence; empty: they are not
    void warn_if_ignored() const;                                   // as a warning

    // With what was chosen now; warns where that cannot be. A file that is ignored stays as it is: it may have been
    // written by hand.
    void keep(const Preferences& chosen) const;

private:
    std::optional<OwnFile> file_;
    Preferences preferences_;
    std::string why_ignored_;
};

} // namespace gpusnoop::cudatop
