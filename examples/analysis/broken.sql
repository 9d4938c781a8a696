-- Which runs, by parameter, broke O3?
SELECT option_literal AS as_printed,
       network_latency_sigma AS sigma,
       count(*) AS runs,
       count_if(outcome = 'violated') AS broke_o3,
       sum(violations) AS violations,
       min_by(run, seed) FILTER (WHERE outcome = 'violated') AS first_of_them
FROM verdicts JOIN runs USING (run)
WHERE property = 'O3'
GROUP BY ALL
ORDER BY as_printed, sigma
