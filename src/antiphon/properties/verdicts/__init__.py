"""What a checker reports, and how verdicts are summed up and worded."""
