// SPDX-License-Identifier: Apache-2.0
// Ledger that is kept across runs (--state), in a file that is replaced atomically.
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
    // Value of --by. Later runs must use the same --by and --split.
    std::string view;
    uint64_t began_ns = 0; // start of the totals, CLOCK_REALTIME
    uint64_t saved_ns = 0;
    Ledger ledger;

    // Time between began_ns and saved_ns that the ledger does not cover.
    uint64_t unseen_ns() const;

    // Sets saved_ns; the first call also sets began_ns. If the clock was set back since the last call, began_ns moves
    // back by the same amount, so that the time from began_ns to saved_ns always covers the ledger. Returns that
    // amount, or 0.
    uint64_t saved_at(uint64_t wall_ns);

    std::string text() const;
    // Parses the result of text(). Throws Error if the text is invalid.
    static SpendState of(std::string_view text, const std::string& file);
};

class StateFile {
public:
    // Locks the file for this run. Throws Error if another run has locked the file, or if the file cannot be used.
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
