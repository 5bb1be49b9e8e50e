// SPDX-License-Identifier: Apache-2.0
// A ledger that outlives the run (--state), in a file that is replaced atomically.
#pragma once

#include "base/fd.hpp"
#include "base/output_path.hpp"
#include "tools/gpuspend/ledger.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace gpusnoop {

class SpendState {
public:
    // The --by of the run. It and the ledger's --split must be the same in later runs.
    std::string view;
    uint64_t began_ns = 0; // time of day
    uint64_t saved_ns = 0;
    Ledger ledger;

    // Time between began_ns and saved_ns that no slice of the ledger covers.
    uint64_t unseen_ns() const;

    // Sets saved_ns; the first call also sets began_ns. If the clock was set back meanwhile, began_ns moves back with
    // it, so that the time from began_ns to saved_ns always covers the ledger. Returns by how much the clock was set
    // back, or 0.
    uint64_t saved_at(uint64_t wall_ns);

    std::string text() const;
    // Parses and validates an output of text(). Throws Error if it is none.
    static SpendState of(std::string_view text, const std::string& file);
};

class StateFile {
public:
    // Locks the file for this run. Throws Error if another run has locked it, or it cannot be used.
    explicit StateFile(std::string path);

    // nullopt if there is no file yet. Throws Error.
    std::optional<SpendState> read() const;
    // Replaces the file atomically, and syncs it to disk. Throws Error.
    void write(const SpendState& state) const;

private:
    OutputPath path_;
    Fd lock_;
};

} // namespace gpusnoop
