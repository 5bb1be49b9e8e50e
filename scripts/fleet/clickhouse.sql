-- SPDX-License-Identifier: Apache-2.0
-- The lines of gpusnoop's recordings in this folder (*.json and *.json.gz), for clickhouse local. views.sql reads them
-- through a view or table `lines`. Lines are first read as text, because ClickHouse's JSON reader would stop at a
-- truncated line.
SET join_use_nulls = 1;
SET prefer_column_name_to_alias = 1;

CREATE VIEW recorded AS
SELECT parseDateTime64BestEffortOrNull(t.time, 6, 'UTC') AS moment, JSONExtract(line, 'Tuple(
    type Nullable(String), run Nullable(String), host Nullable(String), boot_id Nullable(String), tool Nullable(String),
    version Nullable(String), command_line Nullable(String), time Nullable(String), time_ns Nullable(Int64),
    interval_ns Nullable(Int64),
    namespace Nullable(String), pod Nullable(String), slurm_job Nullable(String), comm Nullable(String),
    pid Nullable(Int64),
    launches Nullable(Int64), graph_launches Nullable(Int64), graph_kernels Nullable(Int64), copies Nullable(Int64),
    blocked_ns Nullable(Int64), errors Nullable(Int64), memory_bytes Nullable(Int64),
    of Nullable(String), team Nullable(String), user Nullable(String), device_time_ns Nullable(Int64),
    used_ns Nullable(Int64), idle_ns Nullable(Int64), allocated_ns Nullable(Int64), cost_micros Nullable(Int64),
    idle_cost_micros Nullable(Int64), currency Nullable(String),
    kernel Nullable(String), command Nullable(String), calls Nullable(Int64), total_ns Nullable(Int64),
    communicator Nullable(String), sequence Nullable(Int64), rank Nullable(Int64), ranks Nullable(Int64),
    op Nullable(String), sync_wait_ns Nullable(Int64))') AS t
FROM file('*.json*', 'LineAsString', 'line String') WHERE isValidJSON(line);

CREATE VIEW rollout AS SELECT parseDateTime64BestEffortOrNull(at, 6, 'UTC') AS began FROM asked;
