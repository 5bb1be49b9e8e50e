-- Candidates for stragglers: processes that wait far less than the median of their job, because a slow rank makes the
-- others wait, and waits least itself. Clocks of hosts are not compared.
-- Needs: cudatop --by pid --record FILE 10
WITH waits AS (
    SELECT job, host, pid, sum(blocked_ns) / sum(interval_ns) AS waiting, sum(launches) AS launched
    FROM cudatop_rows WHERE blocked_ns IS NOT NULL GROUP BY job, host, pid),
jobs AS (SELECT job, median(waiting) AS usual, count(*) AS ranks FROM waits GROUP BY job),
spread AS (
    SELECT w.job AS job, median(abs(w.waiting - j.usual)) AS deviation
    FROM waits AS w INNER JOIN jobs AS j ON w.job = j.job GROUP BY w.job)
SELECT w.job AS job, w.host AS host, w.pid AS pid, w.waiting AS waits_share, j.usual AS usual_share,
       j.ranks AS of_ranks, w.launched AS launched
FROM waits AS w INNER JOIN jobs AS j ON w.job = j.job INNER JOIN spread AS s ON w.job = s.job
WHERE j.ranks >= 4 AND j.usual >= 0.1 AND w.waiting < j.usual / 2 AND w.waiting < j.usual - 5 * s.deviation
ORDER BY j.usual - w.waiting DESC, w.host, w.pid LIMIT 20;
