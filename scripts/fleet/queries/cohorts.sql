-- Hosts whose ranks are slower than their peers: how often a rank of the host arrived last, and the share of the job's
-- compute time that the other ranks lost by waiting for the host.
-- Needs: ncclwait -e --record FILE, on all hosts of the job
WITH collectives AS (
    SELECT communicator, sequence, argMin(host, sync_wait_ns) AS late_host,
           sum(sync_wait_ns) - min(sync_wait_ns) * count(*) AS wasted_ns
    FROM ncclwait_lines WHERE sync_wait_ns IS NOT NULL GROUP BY communicator, sequence
    HAVING count(DISTINCT rank) = max(ranks)),
ranks_of_jobs AS (
    SELECT communicator, rank, max(time_ns + sync_wait_ns) - min(time_ns) AS ns
    FROM ncclwait_lines GROUP BY communicator, rank),
jobs AS (SELECT communicator, count(*) AS of_ranks, sum(ns) AS all_ns FROM ranks_of_jobs GROUP BY communicator),
calls AS (SELECT communicator, count(*) AS n FROM collectives GROUP BY communicator)
SELECT c.communicator AS communicator, c.late_host AS host, any_value(j.of_ranks) AS of_ranks,
       100.0 * count(*) / any_value(n.n) AS came_last_percent,
       100.0 * sum(c.wasted_ns) / any_value(j.all_ns) AS wasted_percent
FROM collectives AS c INNER JOIN jobs AS j ON c.communicator = j.communicator
     INNER JOIN calls AS n ON c.communicator = n.communicator
GROUP BY c.communicator, c.late_host ORDER BY wasted_percent DESC, c.communicator, c.late_host LIMIT 20;
