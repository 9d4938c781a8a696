-- View-change time by fault, in views of a majority
SELECT fault,
       option_suspect_after_ns / 1e6 AS suspect_after_ms,
       count(*) AS views,
       min(since_fault_ns) / 1e6 AS shortest_ms,
       avg(since_fault_ns) / 1e6 AS mean_ms,
       max(since_fault_ns) / 1e6 AS longest_ms
FROM (SELECT run, since_fault_ns, size(members) AS reached, explode(faults) AS fault FROM view_changes)
JOIN runs USING (run)
WHERE 2 * reached > members
GROUP BY ALL
ORDER BY fault, suspect_after_ms
