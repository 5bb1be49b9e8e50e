// SPDX-License-Identifier: Apache-2.0
#include "run/tool.hpp"

#include "attach/file_search.hpp"
#include "attach/programs.hpp"
#include "attach/refusal.hpp"
#include "base/ending_signals.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "output/output_buffer.hpp"
#include "run/command_line.hpp"
#include "run/preflight.hpp"
#include "run/run.hpp"
#include "run/shared_options.hpp"
#include "run/started_program.hpp"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <new>
#include <optional>
#include <utility>

namespace gpusnoop {

std::unique_ptr<Output> Tool::make_output(const Options& options)
{
    return options.json ? make_json_output(this_run()) : make_text_output(options.timestamps);
}

ReplayView Tool::replayed()
{
    throw UsageError(fmt::format("--replay is for tables: {} has none that could be shown again", spec_.name));
}

RunPlan plan_run(int argc, char** argv, Tool& tool, Options& options)
{
    const ToolSpec& spec = tool.spec();
    CommandLine line(spec.name, spec.summary, spec.examples);
    options.ring_mb = spec.ring_mb;
    add_shared_options(line, options, spec.attach_names, spec.without_interval);
    tool.add_options(line);
    char** const end = argv + argc;
    char** const dashes = std::find(argv, end, std::string_view("--"));
    if (dashes != end) {
        options.program.assign(dashes + 1, end);
        if (options.program.empty())
            throw UsageError("a program must follow --");
    }
    line.parse(static_cast<int>(dashes - argv), argv);
    check_replay(line, options);
    options.user_stacks |= options.draws_flames();
    check_shared_options(options);
    set_verbosity(options.verbosity);
    RunPlan plan = tool.plan(options);
    if (!options.trace.empty() && !plan.lines)
        throw UsageError("a timeline (--trace) is made of lines: add -e");
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
    if (tool.did_without_tracing(options, signals))
        return;
    if (!options.replay.empty()) {
        const EndAtOnce while_reading_and_printing;
        return replay_tables(tool.spec().name, tool.replayed(), options);
    }
    if (!options.program.empty() && !options.info) {
        const ProbePlan probes = plan_probes(plan.programs);
        const FileSearch search(probes.probes, plan.counts_runtime);
        const MappingGate::Policy gate{.holds = [&search](std::string_view path) { return search.may_matter(path); },
                                       .holds_exec = search.in_any_file()};
        program.emplace(options.program, signals, probes.probes.empty() ? std::nullopt : std::optional(gate),
                        options.user);
        options.pids = {program->pid()};
    }
    raise_descriptor_limit();
    Run(tool, options, std::move(plan), signals, program ? &*program : nullptr).run();
}

void print(const std::string& text, EndingSignals& signals)
{
    const Output::GivesUp gives_up = [&](auto) { return signals.came(); };
    OutputBuffer out(gives_up);
    out.text = text;
    out.flush();
}

int failed(std::string_view why, std::string_view hint = {})
{
    warn(why);
    if (!hint.empty())
        say(fmt::format("hint: {}\n", printable(hint))); // it may name containers
    return 1;
}

// body: may set the name, once it knows it.
int life_of(std::string_view& name, const std::function<int(EndingSignals&)>& body)
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
        return 0; // before there was anything to report
    } catch (const OutputClosed&) {
        return 0; // whoever read the output has seen enough
    } catch (const UsageError& error) {
        warn(error.what());
        say(fmt::format("Try '{} --help'.\n", name));
        return 2;
    } catch (const CannotStart& error) {
        failed(error.what(), error.hint());
        return error.status();
    } catch (const Error& error) {
        return failed(error.what(), error.hint());
    } catch (const std::bad_alloc&) {
        return failed("there is not enough memory", "raise ulimit -v, or the memory limit of its cgroup");
    } catch (const std::exception& error) {
        return failed(error.what());
    }
}

} // namespace

int run_reader(std::string_view name, const std::function<int()>& body)
{
    set_tool_name(name);
    return life_of(name, [&](EndingSignals& signals) {
        signals.kill_again(); // there is nothing to put right: it may be killed
        return body();
    });
}

int run_tool(int argc, char** argv, const std::function<std::unique_ptr<Tool>()>& make)
{
    std::string_view name;
    return life_of(name, [&](EndingSignals& signals) {
        std::optional<StartedProgram> program;
        try {
            const std::unique_ptr<Tool> tool = make();
            name = tool->spec().name;
            run(argc, argv, *tool, signals, program);
        } catch (const OutputClosed&) {
            // whoever read the output has seen enough
        }
        return program && program->released() ? program->wait(signals) : 0;
    });
}

} // namespace gpusnoop
