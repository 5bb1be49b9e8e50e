-- SPDX-License-Identifier: Apache-2.0
-- Views of the tools' rows, each with its host. Views and queries work with both DuckDB and ClickHouse.

-- If a recording continues in a second file, that file repeats the first line.
CREATE VIEW runs AS
SELECT t.run AS run, any_value(t.host) AS host, any_value(t.boot_id) AS boot_id, any_value(t.tool) AS tool,
       any_value(t.version) AS version, any_value(t.command_line) AS command_line
FROM lines AS t WHERE t.type = 'start' GROUP BY t.run;

CREATE VIEW rows_of_tools AS
SELECT t.type AS type, t.run AS run, t.host AS host, t.tool AS tool, moment, t.time_ns AS time_ns, t.interval_ns AS interval_ns,
       t.namespace AS namespace, t.pod AS pod, t.slurm_job AS slurm_job, t.comm AS comm, t.pid AS pid,
       t.launches AS launches, t.graph_launches AS graph_launches, t.graph_kernels AS graph_kernels,
       t.copies AS copies, t.blocked_ns AS blocked_ns, t.errors AS errors,
       t.memory_bytes AS memory_bytes, t."of" AS "of", t.team AS team, t."user" AS "user",
       t.device_time_ns AS device_time_ns, t.used_ns AS used_ns, t.idle_ns AS idle_ns, t.allocated_ns AS allocated_ns,
       t.cost_micros AS cost_micros, t.idle_cost_micros AS idle_cost_micros, t.currency AS currency, t.kernel AS kernel,
       t.command AS command, t.calls AS calls, t.total_ns AS total_ns, t.communicator AS communicator,
       t.sequence AS sequence, t.rank AS rank, t.ranks AS ranks, t.op AS op, t.sync_wait_ns AS sync_wait_ns
FROM lines AS t WHERE t.type = 'row' OR t.type = 'event';

-- Rows of processes. A job is a set of pods whose names differ only in a number, else a Slurm job, else all programs of
-- one name.
CREATE VIEW cudatop_rows AS
SELECT l.host AS host, l.moment AS moment, l.interval_ns AS interval_ns, l.namespace AS namespace, l.pod AS pod,
       l.comm AS comm, l.pid AS pid,
       coalesce(l.namespace || '/' || regexp_replace(l.pod, '-[0-9]+$', ''),
                'slurm:' || l.slurm_job, l.comm) AS job,
       l.launches AS launches, l.graph_launches AS graph_launches, l.graph_kernels AS graph_kernels, l.copies AS copies,
       l.blocked_ns AS blocked_ns, l.errors AS errors, l.memory_bytes AS memory_bytes
FROM rows_of_tools AS l WHERE l.tool = 'cudatop' AND l.type = 'row' AND l.pid IS NOT NULL;

-- Rows of runs with --state are totals since the state file was created and must not be added up. Only a run's first
-- line, with its command line, identifies such a run.
CREATE VIEW gpuspend_rows AS
SELECT l.host AS host, l.moment AS moment, l.interval_ns AS interval_ns, l."of" AS "of", l.team AS team,
       l.namespace AS namespace, l."user" AS "user", l.device_time_ns AS device_time_ns, l.used_ns AS used_ns,
       l.idle_ns AS idle_ns, l.allocated_ns AS allocated_ns, l.cost_micros AS cost_micros,
       l.idle_cost_micros AS idle_cost_micros, l.currency AS currency
FROM rows_of_tools AS l INNER JOIN runs AS r ON l.run = r.run
WHERE l.tool = 'gpuspend' AND l.type = 'row' AND r.command_line NOT LIKE '% --state%';

CREATE VIEW cudalaunch_rows AS
SELECT l.host AS host, l.moment AS moment, l.interval_ns AS interval_ns, l.namespace AS namespace, l.comm AS comm,
       l.kernel AS kernel, l.launches AS launches
FROM rows_of_tools AS l WHERE l.tool = 'cudalaunch' AND l.type = 'row' AND l.kernel IS NOT NULL;

CREATE VIEW nvioctl_rows AS
SELECT l.host AS host, l.moment AS moment, l.interval_ns AS interval_ns, l.command AS command, l.calls AS calls,
       l.errors AS errors, l.total_ns AS total_ns
FROM rows_of_tools AS l WHERE l.tool = 'nvioctl' AND l.type = 'row' AND l.command IS NOT NULL;

-- Lines of ncclwait -e about collectives that have a sequence number, which is the same on all hosts.
CREATE VIEW ncclwait_lines AS
SELECT l.host AS host, l.moment AS moment, l.time_ns AS time_ns, l.communicator AS communicator, l.sequence AS sequence,
       l.rank AS rank, l.ranks AS ranks, l.op AS op, l.sync_wait_ns AS sync_wait_ns
FROM rows_of_tools AS l WHERE l.tool = 'ncclwait' AND l.type = 'event' AND l.sequence IS NOT NULL;
