// SPDX-License-Identifier: Apache-2.0
#include "output/recording.hpp"

#include <algorithm>
#include <map>

namespace gpusnoop {
namespace {

constexpr size_t runs_max = 10'000;
constexpr double known_schema = 1;

class Runs {
public:
    // Lines of several runs may be mixed where each has an id; else they are of the one that began last.
    struct Run {
        RunOf of;
        bool known = true; // what its keys mean
    };

    // Of a run whose first line is missing, any other says as much as is needed.
    Run& of(const Record& record)
    {
        const std::string_view id = record.text("run");
        if (id.empty() && last_)
            return *last_;
        Run& run = add(id);
        if (run.of.tool.empty())
            note(run, record);
        return run;
    }

    Run& begin(const Record& record)
    {
        Run& run = add(record.text("run"));
        note(run, record);
        run.of.version = record.text("version");
        run.of.command_line = record.text("command_line");
        last_ = &run;
        return run;
    }

    void next_file() { last_ = nullptr; }

private:
    static void note(Run& run, const Record& record)
    {
        run.of.tool = record.text("tool");
        run.of.host = record.text("host");
        run.known = (record.type() != "start" && !record.number("schema")) || record.number("schema") == known_schema;
    }

    // A run that has no id is another one each time.
    Run& add(std::string_view id)
    {
        const std::string key = id.empty() ? "\n" + std::to_string(numbers_) : std::string(id);
        const auto found = runs_.find(key);
        if (found != runs_.end())
            return found->second;
        if (runs_.size() >= runs_max)
            runs_.clear();
        Run& run = runs_[key];
        run.of.number = numbers_++;
        run.of.id = id;
        if (id.empty())
            last_ = &run;
        return run;
    }

    std::map<std::string, Run> runs_;
    Run* last_ = nullptr;
    size_t numbers_ = 0;
};

} // namespace

Unread read_recording(std::span<const std::string> files, const UseRecord& use)
{
    Unread unread;
    Runs runs;
    for (const std::string& file : files) {
        RecordedLines lines(file);
        runs.next_file();
        while (const auto line = lines.next()) {
            if (line->empty())
                continue;
            const auto record = Record::parse(*line);
            if (!record)
                unread.not_json++;
            else if (record->type() == "start")
                runs.begin(*record);
            else if (const auto& run = runs.of(*record); run.known)
                use(run.of, *record, *line);
            else
                unread.other_schema++;
        }
        unread.damage.bytes += lines.damage().bytes;
        unread.damage.long_lines += lines.damage().long_lines;
        unread.damage.cut_off |= lines.damage().cut_off;
    }
    return unread;
}

} // namespace gpusnoop
