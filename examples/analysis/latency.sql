-- Latency against an option: how long members stay silent
SELECT group_orders_members AS members,
       option_time_silence_ns / 1e6 AS silence_ms,
       count(*) AS runs,
       avg(latency_mean_ns) / 1e6 AS mean_ms,
       avg(latency_p99_ns) / 1e6 AS p99_ms,
       avg(copies_per_message) AS copies
FROM figures JOIN runs USING (run)
GROUP BY ALL
ORDER BY members, silence_ms
