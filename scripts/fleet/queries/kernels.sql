-- The kernels that the fleet launches most.
-- Needs: cudalaunch --by kernel --record FILE 60
SELECT kernel, sum(launches) AS launched, count(DISTINCT host) AS hosts,
       100.0 * sum(launches) / (SELECT sum(launches) FROM cudalaunch_rows) AS percent
FROM cudalaunch_rows GROUP BY kernel ORDER BY launched DESC, kernel LIMIT 20;
