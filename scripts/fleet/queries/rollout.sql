-- Kernels per process and second, waits and errors of each job before and after a time (--at). Each host is compared
-- with itself: the numbers of hosts whose value fell, and rose, by more than 5 % indicate whether the change is more
-- than chance.
-- Needs: cudatop --by pid --record FILE 10
WITH sides AS (
    SELECT job, host, CASE WHEN moment <= (SELECT began FROM rollout) THEN 0 ELSE 1 END AS is_after,
           sum(launches + coalesce(graph_kernels, 0)) / (sum(interval_ns) / 1e9) AS kernels,
           sum(blocked_ns) / sum(interval_ns) AS waiting, sum(errors) AS failed
    FROM cudatop_rows WHERE launches IS NOT NULL GROUP BY job, host, is_after)
SELECT a.job AS job, count(*) AS hosts, median(a.kernels) AS kernels_before, median(b.kernels) AS kernels_after,
       sum(CASE WHEN b.kernels < 0.95 * a.kernels THEN 1 ELSE 0 END) AS hosts_down,
       sum(CASE WHEN b.kernels > 1.05 * a.kernels THEN 1 ELSE 0 END) AS hosts_up,
       median(a.waiting) AS waiting_before, median(b.waiting) AS waiting_after,
       sum(a.failed) AS errors_before, sum(b.failed) AS errors_after
FROM sides AS a INNER JOIN sides AS b ON a.job = b.job AND a.host = b.host
WHERE a.is_after = 0 AND b.is_after = 1
GROUP BY a.job ORDER BY abs(median(b.kernels) / nullif(median(a.kernels), 0) - 1) DESC, a.job LIMIT 20;
