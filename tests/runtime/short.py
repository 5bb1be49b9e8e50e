# SPDX-License-Identifier: Apache-2.0
"""Selected cases: those of make test, by what they prove, those of make smoke, and those for other kernels."""

# A name without [VARIANT] stands for all variants, and the name of a file for all its cases.
SHORT = {
    "counts of every tool, under real probes": """
        counts.one_thread counts.eight_threads capture.launches_between_captures layers.each_api[latency]
        events.with_results_and_durations events.a_line_of_text_each copies.by_default copies.sixty_four_threads
        copies.streams_of_both_kinds waits.calls_that_do_not_wait waits.lines allocs.every_runtime_function[workload-static]
        alloc_lines.by_many_threads alloc_ends.memory_held_at_exit graphs.captured_nodes graphs.concurrent_captures
        graphs.lines_of_calls graph_life.reused_handles[threads] cudagap.in_calls cudagap.block_reasons
        cudagap_gaps.lines cudagap_stacks.of_all_threads ncclwait.waits_by_rank[session] ncclwait.counts
        ncclwait_hangs.mismatches driver_calls.one_process driver_calls.only_failures gpuspend.waits
        gpuspend.a_shared_device top.several_processes top.captures_and_instantiations top.rows_by hip.side_by_side
        recordings.before_and_after_a_fusion replay.tables_of_tools maxima.of_an_interval_cudalaunch
        output.intervals_add_up failures.nothing_fails""",
    "each tier": """
        tiers.one_process tiers.system_wide[session] tiers.system_wide[tracefs] tiers.while_memory_is_mapped
        copies.each_tier[session] waits.tiers_are_equal[multi] allocs.tiers_are_equal[tracefs] graph_life.tiers_are_equal[session] top.tiers_are_equal[multi]""",
    "messages and exit statuses": """
        refusals fallback cgroups.wrong_arguments empty.tables[nvioctl] empty.tables[gpualloc] empty.a_process_without_cuda info.cudasync
        top_metrics.refused_options gpuspend.invalid_prices faults.messages_cannot_be_written
        faults.output_cannot_be_written faults.few_files faults.existing_files_are_kept""",
    "processes, threads, forks and exec": """
        processes.a_child_alone processes.exec_of_other_programs processes.reused_pid[session] threads.threads_have_their_own_names
        main_thread.exited_before_tracing[session] main_thread.exec_by_another_thread allocs.executed filters.two_processes_of_three
        filters.one_thread filters.last_target_ends_the_run late.short_lives late.tool_first
        started.from_the_first_call started.children_and_status held.each_way_to_attach[multi] held.tool_killed_while_the_program_waits
        life.signal_ends_with_a_report life.reader_exits life.nothing_left_after_sigkill[session]""",
    "cgroups, containers and pods": """
        cgroups.members_only cgroups.joining_by_fork cgroups.joining_by_being_moved cgroups.growing_from_two_to_thirty
        cgroups.removed_cgroup_ends_the_run containers.a_container_of_runc containers.pods_and_namespaces
        containers.owner_in_the_table containers_hostile.pod_among_hostile_files""",
    "names, stacks and Python": """
        names.running_program[workload] names.driver_lookups names.two_programs_with_one_handle registrations.a_static_runtime_stripped
        registrations.names_are_cached user_stacks.equals_the_programs_own_stack user_stacks.without_frame_pointers
        python.every_frame[3.12,held] python.every_frame[3.9,released] python.by_line""",
    "losses, full tables and failures": """
        events.lost_events_are_counted overflow.totals_stay_exact left.launches[multi]
        left.within_a_wait alloc_who.inexact_values_are_marked neighbours.more_graphs_than_the_table_has
        max_overhead.exact_below_the_limit forwarding.counts_launches_once
        overwritten.by_identical_bytes_while_mapped files.a_path_with_a_space[tracefs] forms.runtime_alone
        hostile.text_stays_text hostile_files.an_endless_environment helpers.the_tool_drops_capabilities
        helpers.a_target_whose_library_root_may_not_read""",
    "the screen, verdicts and devices": """
        top_screen.drill_down top_screen.signals_restore_the_terminal diagnosis.one_rule_per_process[waits] diagnosis.stopped_in_a_wait
        why.details_are_frames stuck.in_flight_before_tracing waiting.began_before_tracing[session] earlier.frees
        top_nvml.figures_of_processes_and_devices top_nvml.nvml_hangs top_gpus.with_nvml alloc_nvml.per_process
        amd_gpus.of_processes_and_devices top_kept.changed_by_keys""",
}


def names():
    return [name for text in SHORT.values() for name in text.split()]

# Three cases per tool: exact counts, failures or another main option, and lines or several processes.
SMOKE = {
    "cudalaunch": "counts.one_thread failures.errors_beside_successes events.with_results_and_durations",
    "cudamemcpy": "copies.by_default copies.streams_of_both_kinds copies.each_tier[session]",
    "cudasync": "waits.lines waits.tiers_are_equal[multi] waiting.began_before_tracing[session]",
    "gpualloc": "allocs.executed alloc_lines.by_many_threads allocs.tiers_are_equal[tracefs]",
    "cudagraph": "graphs.captured_nodes graphs.concurrent_captures graphs.lines_of_calls",
    "nvioctl": "driver_calls.one_process driver_calls.only_failures driver_calls.files",
    "cudagap": "cudagap.in_calls[1] cudagap_gaps.intervals cudagap_stacks.of_all_threads",
    "ncclwait": "ncclwait.waits_by_rank[session] ncclwait.counts ncclwait_hangs.mismatches",
    "gpuspend": "gpuspend.a_shared_device gpuspend.waits gpuspend.unknown_devices",
    "cudatop": "top.several_processes top.captures_and_instantiations top_screen.drill_down",
    "cudadiff": "recordings.before_and_after_a_fusion recordings.recordings_of_events replay.tables_of_tools",
}

# Features that depend on the kernel: tiers, programs with many branches, cgroups and containers, stacks, late loading,
# exits. All cases would take an hour in an emulated machine. None: all cases of the file.
ON_OTHER_KERNELS = {
    "test_tiers": ["system_wide[tracefs]", "system_wide[multi]", "one_process[perf]"],
    "test_counts": ["one_thread", "eight_threads"],
    "test_copies": ["by_default", "tagged_addresses"],
    "test_returns": ["allocations"],
    "test_left": ["in_each_part", "short_wait", "within_a_wait"],
    "test_allocs": ["every_runtime_function[workload13]", "tagged_addresses"],
    "test_waits": ["tiers_are_equal[tracefs]"],
    "test_graphs": ["captured_nodes"],
    "test_budget": None,
    "test_info": ["ways_of_attaching", "cudalaunch", "nvioctl"],
    "test_cudagap": ["block_reasons[pipe, 1]", "block_reasons[fault, 1]", "jumped_out_of_a_call", "throttled[alone]"],
    "test_cudagap_around": ["a_quota"],
    "test_cudagap_gaps": ["lines[pipe, 1]"],
    "test_cudagap_wakers": ["a_chain"],
    "test_ncclwait": ["system_wide"],
    "test_overflow": ["rows_are_freed[entry]"],
    "test_user_stacks": ["every_frame[near]", "every_frame[deepest]", "equals_the_programs_own_stack", "above_48_bits"],
    "test_names": ["user_stacks"],
    "test_layers": ["each_api[latency]", "through_a_protected_runtime"],
    "test_hostile_files": ["clean_after_a_killed_run"],
    "test_late": ["tool_first[both]", "a_process_that_has_no_library_yet"],  # imports test_hostile_files
    "test_earlier": ["each_driver_function[cuCtxSynchronize-asleep]",
                     "each_driver_function[cuStreamSynchronize_ptsz-asleep]",
                     "each_runtime_function[cudaMemcpy-workload13]", "at_the_runtime[cudaMemcpy]", "threads",
                     "no_false_alarm[launches]"],
    "test_python": ["system_wide", "by_line"],
}


def missing(cases):
    """Names in these selections that are not the name of a case."""
    names_of_cases = {case.name for case in cases}
    wanted = [name for name in names() if not any(is_listed(case, name) for case in names_of_cases)]
    wanted += [name for text in SMOKE.values() for name in text.split() if name not in names_of_cases]
    for module, chosen in ON_OTHER_KERNELS.items():
        full = {f"{module.removeprefix('test_')}.{name}" for name in chosen or []}
        wanted += sorted(full - names_of_cases)
    return wanted


def is_listed(case, name):
    return case == name or case.startswith((f"{name}[", f"{name}."))
