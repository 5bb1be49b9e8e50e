// SPDX-License-Identifier: Apache-2.0
// A recording of tables as it went: moment by moment, each with the rows of one report.
#pragma once

#include "output/recording.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusnoop {

struct Moment {
    size_t run = 0;       // of Moments::runs()
    uint64_t wall_ns = 0; // time of day at its end
    double seconds = 0;   // how long it is
    std::vector<std::string> rows;
    std::optional<size_t> table{}; // of Moments::table(); nullopt: the recording does not say how it was shown
};

class Moments {
public:
    // Of rows that are kept, with what each takes beside its text; what comes later is left out.
    static constexpr size_t bytes_max = size_t{512} << 20;
    static constexpr size_t beside = sizeof(Moment) + sizeof(std::string);
    static constexpr size_t rows_max = 20'000; // of one moment

    static constexpr size_t tables_max = 1000;

    // Of one tool, in the order of time. Throws Error where a file cannot be read, or has none: it may be another's.
    Moments(std::span<const std::string> files, std::string_view tool, size_t most = bytes_max);

    const std::vector<Moment>& all() const { return all_; }
    const RunOf& run_of(const Moment& moment) const { return runs_[moment.run]; }
    // The columns that people were shown, as rows/table_columns.hpp writes them.
    const Record::Texts& table(size_t number) const { return tables_[number]; }
    const std::set<std::string>& keys() const { return keys_; } // that rows have, but those of GPUs and diagnoses
    const Unread& unread() const { return unread_; }
    size_t left_out() const { return left_out_; } // rows
    uint64_t lost() const { return lost_; }       // that lines of the recording tell of

    // The first that ends at this time or later; the last one where none does.
    size_t at(uint64_t wall_ns) const;
    // The same by "10:05:30", of the day that the recording begins on where this runs, or by a time as JSON has it.
    // Empty: the first. Throws UsageError.
    size_t at(const std::string& time) const;

    // What is missing from what is shown, in sentences.
    std::vector<std::string> missing() const;

private:
    void take(const RunOf& of, const Record& record, std::string_view line);
    void take_table(const RunOf& of, const Record& record);

    std::string tool_;
    size_t most_;
    size_t bytes_ = 0;
    std::vector<RunOf> runs_;
    std::vector<Moment> all_;
    std::vector<Record::Texts> tables_;
    std::map<size_t, size_t> table_of_run_; // the one that its rows are of, by RunOf::number
    std::set<std::string> keys_;
    std::set<std::string> other_tools_;
    Unread unread_;
    size_t left_out_ = 0;
    uint64_t lost_ = 0;
};

// Nullopt also where it is before 1970, or after 2500.
std::optional<uint64_t> moment_of(std::string_view time);

// Whether rows that say this of "by" are about processes, and not what is told beside them.
bool is_main_row(std::string_view by);

} // namespace gpusnoop
