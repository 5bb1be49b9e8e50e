-- GPU-hours and cost by team: used, held idle, and unallocated, which add up to the total. Runs with --state are left
-- out, because their rows are totals since the state file was created; the last line of the result has the number of
-- these runs.
-- Needs: gpuspend --teams FILE --by team [--prices FILE] --record FILE 60
SELECT * FROM (
    SELECT CASE WHEN "of" = 'tenant' THEN coalesce(team, namespace, "user", '(no owner)')
                ELSE '(' || "of" || ')' END AS whose,
           sum(CASE WHEN "of" IN ('tenant', 'total') THEN used_ns ELSE 0 END) / 3.6e12 AS used_hours,
           sum(CASE WHEN "of" IN ('tenant', 'total') THEN idle_ns ELSE 0 END) / 3.6e12 AS idle_hours,
           sum(CASE WHEN "of" = 'unallocated' THEN device_time_ns ELSE 0 END) / 3.6e12 AS unallocated_hours,
           sum(cost_micros) / 1e6 AS cost,
           sum(CASE WHEN "of" = 'tenant' THEN idle_cost_micros ELSE 0 END) / 1e6 AS idle_cost, currency
    FROM gpuspend_rows WHERE "of" IN ('tenant', 'unallocated', 'total')
    GROUP BY whose, currency
    UNION ALL
    SELECT '(left out: runs with --state: ' || CAST(count(*) AS VARCHAR) || ')' AS whose, NULL, NULL, NULL, NULL, NULL, NULL
    FROM runs WHERE tool = 'gpuspend' AND command_line LIKE '% --state%' HAVING count(*) > 0
) ORDER BY currency, used_hours + idle_hours + unallocated_hours DESC, whose;
