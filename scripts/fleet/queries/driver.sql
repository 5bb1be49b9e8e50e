-- Hosts whose driver calls became slow: the second half of a host's recording compared with its first half, and with
-- the median of the second halves of all hosts.
-- Needs: nvioctl --record FILE 60
WITH spans AS (
    SELECT host, min(moment) AS first_moment, max(moment) AS last_moment FROM nvioctl_rows GROUP BY host),
halves AS (
    SELECT d.host AS host, d.command AS command, d.calls AS calls, d.total_ns AS total_ns,
           CASE WHEN d.moment - s.first_moment > s.last_moment - d.moment THEN 1 ELSE 0 END AS is_late
    FROM nvioctl_rows AS d INNER JOIN spans AS s ON d.host = s.host),
means AS (
    SELECT host, command, sum(calls) AS called,
           sum(CASE WHEN is_late = 0 THEN total_ns ELSE 0 END) / 1e3
               / nullif(sum(CASE WHEN is_late = 0 THEN calls ELSE 0 END), 0) AS before_us,
           sum(CASE WHEN is_late = 1 THEN total_ns ELSE 0 END) / 1e3
               / nullif(sum(CASE WHEN is_late = 1 THEN calls ELSE 0 END), 0) AS after_us
    FROM halves GROUP BY host, command),
fleet AS (SELECT command, median(after_us) AS usual_us, count(*) AS hosts FROM means GROUP BY command)
SELECT m.host AS host, m.command AS command, m.called AS called, m.before_us AS before_us, m.after_us AS after_us,
       f.usual_us AS usual_us, f.hosts AS of_hosts
FROM means AS m INNER JOIN fleet AS f ON m.command = f.command
WHERE m.after_us > 2 * m.before_us AND m.after_us > 2 * f.usual_us
ORDER BY (m.after_us - m.before_us) * m.called DESC, m.host LIMIT 20;
