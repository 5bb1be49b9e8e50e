// SPDX-License-Identifier: Apache-2.0
// A ledger that outlives the run (--state): a file that is replaced as a whole, or not at all.
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
    // What rows are by, and what a shared device is divided by: another run's must be the same.
    std::string view;
    uint64_t began_ns = 0; // time of day
    uint64_t saved_ns = 0;
    Ledger ledger;

    // Between the two nobody looked, for as long as the ledger's slices do not cover.
    uint64_t unseen_ns() const;

    // Sets saved_ns; the first call sets began_ns, too. If the clock was set back meanwhile, began_ns moves back with
    // it, so that the time since then always covers the ledger. Returns by how many nanoseconds it was set back, or 0.
    uint64_t saved_at(uint64_t wall_ns);

    std::string text() const;
    // Throws Error where it is not what text() makes; nothing of it is believed unseen.
    static SpendState of(std::string_view text, const std::string& file);
};

class StateFile {
public:
    // Takes it for this run alone. Throws Error where another one has it, or it cannot be.
    explicit StateFile(std::string path);

    // nullopt: there is none yet. Throws Error.
    std::optional<SpendState> read() const;
    // Replaces it as a whole, on the disk, too. Throws Error.
    void write(const SpendState& state) const;

private:
    OutputPath path_;
    Fd lock_;
};

} // namespace gpusnoop
