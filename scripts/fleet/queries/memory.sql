-- Processes whose device memory grew: first and last value, and growth per hour.
-- Needs: cudatop --by pid --record FILE 10
WITH held AS (
    SELECT host, pid, any_value(coalesce(namespace || '/' || pod, comm)) AS whose,
           argMin(memory_bytes, moment) AS first_bytes, argMax(memory_bytes, moment) AS last_bytes,
           max(memory_bytes) AS peak_bytes, sum(interval_ns) / 3.6e12 AS hours
    FROM cudatop_rows WHERE memory_bytes IS NOT NULL GROUP BY host, pid)
SELECT host, pid, whose, first_bytes, last_bytes, peak_bytes, (last_bytes - first_bytes) / hours AS bytes_per_hour
FROM held WHERE last_bytes > first_bytes ORDER BY last_bytes - first_bytes DESC, host, pid LIMIT 20;
