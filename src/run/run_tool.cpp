// SPDX-License-Identifier: Apache-2.0
#include "run/run_tool.hpp"

#include "attach/file_search.hpp"
#include "attach/programs.hpp"
#include "base/ending_signals.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "output/output_buffer.hpp"
#include "output/replay.hpp"
#include "run/preflight.hpp"
#include "run/run.hpp"
#include "run/started_program.hpp"

#include <exception>
#include <fmt/format.h>
#include <new>
#include <optional>
#include <utility>

namespace gpusnoop {

RunPlan plan_run(int argc, char** argv, Tool& tool, Options& options)
{
    options = tool.parse(argc, argv);
    set_verbosity(options.verbosity);
    RunPlan plan = tool.plan();
    if (!options.trace.empty() && !plan.lines)
        throw UsageError("a timeline (--trace) is drawn from lines: add -e");
    return plan;
}

namespace {

void run(int argc, char** argv, Tool& tool, EndingSignals& signals, std::optional<StartedProgram>& program)
{
    set_tool_name(tool.spec().name);
    quiet_libbpf();
    Options options;
    RunPlan plan = plan_run(argc, argv, tool, options);
    if (options.clean)
        throw Answer(clean_up());
    if (!options.replay.empty() && plan.hooks.replay)
        return plan.hooks.replay(signals);
    if (!options.replay.empty()) {
        const ExitOnSignal while_reading_and_printing;
        if (!plan.replay)
            throw UsageError(
                fmt::format("--replay shows recorded tables, and {} has none to replay", tool.spec().name));
        return replay_tables(tool.spec().name, *plan.replay, options);
    }
    if (!options.program.empty() && !options.info) {
        const ProbePlan probes = plan_probes(plan.programs);
        const FileSearch search(probes.probes, plan.counts_runtime);
        const MappingGate::Policy gate{
            .holds = [&search](std::string_view path) { return search.may_have_probes(path); },
            .holds_exec = search.searches_all_files()};
        program.emplace(options.program, signals, probes.probes.empty() ? std::nullopt : std::optional(gate),
                        options.user);
        options.pids = {program->pid()};
    }
    raise_descriptor_limit();
    Run(tool, options, std::move(plan), signals, program ? &*program : nullptr).run();
}

void print(const std::string& text, EndingSignals& signals)
{
    const Output::GivesUp gives_up = [&](auto) { return signals.arrived(); };
    OutputBuffer out(gives_up);
    out.text = text;
    out.flush();
}

int failed(std::string_view why, std::string_view hint = {})
{
    warn(why);
    if (!hint.empty())
        print_stderr(fmt::format("hint: {}\n", printable(hint))); // escaped, because it may contain names of containers
    return 1;
}

// Runs body, and turns its exceptions into messages and exit statuses. body may set `name` once the tool is known.
int run_guarded(std::string_view& name, const std::function<int(EndingSignals&)>& body)
{
    hold_closed_streams();
    try {
        EndingSignals signals;
        try {
            return body(signals);
        } catch (const Answer& answer) {
            print(answer.text, signals);
            return 0;
        }
    } catch (const Interrupted&) {
        return 0; // interrupted before tracing began
    } catch (const OutputClosed&) {
        return 0; // the reader of stdout has closed it, as head does
    } catch (const UsageError& error) {
        warn(error.what());
        print_stderr(fmt::format("Try '{} --help'.\n", name));
        return 2;
    } catch (const CannotStart& error) {
        failed(error.what(), error.hint());
        return error.status();
    } catch (const Error& error) {
        return failed(error.what(), error.hint());
    } catch (const std::bad_alloc&) {
        return failed("out of memory", "raise ulimit -v, or the memory limit of the cgroup");
    } catch (const std::exception& error) {
        return failed(error.what());
    }
}

} // namespace

int run_reader(std::string_view name, const std::function<int()>& body)
{
    set_tool_name(name);
    return run_guarded(name, [&](EndingSignals& signals) {
        signals.unblock(); // signals may kill this program, since it needs no cleanup
        return body();
    });
}

int run_tool(int argc, char** argv, const std::function<std::unique_ptr<Tool>()>& make)
{
    std::string_view name;
    return run_guarded(name, [&](EndingSignals& signals) {
        std::optional<StartedProgram> program;
        try {
            const std::unique_ptr<Tool> tool = make();
            name = tool->spec().name;
            run(argc, argv, *tool, signals, program);
        } catch (const OutputClosed&) {
            // tracing ends, but the started program continues
        }
        return program && program->released() ? program->wait(signals) : 0;
    });
}

} // namespace gpusnoop
