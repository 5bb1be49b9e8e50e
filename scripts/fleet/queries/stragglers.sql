-- The straggler of each collective, by sequence number: the rank, on any host, that waited least, because the others
-- waited for it. This compares durations of waits, not clocks of hosts.
-- Needs: ncclwait -e --record FILE, on all hosts of the job
WITH collectives AS (
    SELECT communicator, sequence, max(ranks) AS of_ranks, argMin(rank, sync_wait_ns) AS late_rank,
           argMin(host, sync_wait_ns) AS late_host, any_value(op) AS operation,
           median(sync_wait_ns) - min(sync_wait_ns) AS late_ns
    FROM ncclwait_lines WHERE sync_wait_ns IS NOT NULL GROUP BY communicator, sequence
    HAVING count(DISTINCT rank) = max(ranks))
SELECT communicator, sequence, operation, late_rank, late_host, of_ranks, late_ns / 1e6 AS late_ms
FROM collectives ORDER BY late_ns DESC, communicator, sequence LIMIT 20;
