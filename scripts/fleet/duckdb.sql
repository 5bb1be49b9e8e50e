-- SPDX-License-Identifier: Apache-2.0
-- The lines of gpusnoop's recordings in this folder (*.json and *.json.gz), for DuckDB 1.2 or newer. views.sql reads
-- them through a view or table `lines`. Columns are listed, because types guessed from the first lines may be wrong for
-- later ones. A truncated line becomes a row of NULLs, which no view selects.
SET VARIABLE recordings = (SELECT list(file) FROM glob('*.json*'));

CREATE VIEW recorded AS SELECT *, "time" AS moment FROM read_json(getvariable('recordings'),
    format = 'newline_delimited', ignore_errors = true, maximum_object_size = 1048576, columns = {
    type: 'VARCHAR', run: 'VARCHAR', host: 'VARCHAR', boot_id: 'VARCHAR', tool: 'VARCHAR', version: 'VARCHAR',
    command_line: 'VARCHAR', time: 'TIMESTAMPTZ', time_ns: 'BIGINT', interval_ns: 'BIGINT',
    namespace: 'VARCHAR', pod: 'VARCHAR', slurm_job: 'VARCHAR', comm: 'VARCHAR', pid: 'BIGINT',
    launches: 'BIGINT', graph_launches: 'BIGINT', graph_kernels: 'BIGINT', copies: 'BIGINT', blocked_ns: 'BIGINT',
    errors: 'BIGINT', memory_bytes: 'BIGINT',
    "of": 'VARCHAR', team: 'VARCHAR', "user": 'VARCHAR', device_time_ns: 'BIGINT', used_ns: 'BIGINT', idle_ns: 'BIGINT',
    allocated_ns: 'BIGINT', cost_micros: 'BIGINT', idle_cost_micros: 'BIGINT', currency: 'VARCHAR',
    kernel: 'VARCHAR', command: 'VARCHAR', calls: 'BIGINT', total_ns: 'BIGINT',
    communicator: 'VARCHAR', sequence: 'BIGINT', rank: 'BIGINT', ranks: 'BIGINT', op: 'VARCHAR',
    sync_wait_ns: 'BIGINT'});

CREATE VIEW rollout AS SELECT try_cast("at" AS TIMESTAMPTZ) AS began FROM asked;
