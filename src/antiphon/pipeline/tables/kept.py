"""Files beside runs.parquet in which campaigns and sweeps keep what they found about each run."""

from typing import Final

FINDINGS: Final = "findings.parquet"
"""Campaigns: the gold table `verdicts`, of all runs."""
OUTCOMES: Final = "outcomes.parquet"
"""Campaigns: of each run `settled`, `error` and the number of `events`."""
FIGURES: Final = "figures.parquet"
"""Sweeps: of each run the varied values, `settled`, `error` and the figures."""
