"""What a run leaves behind: the event schema, who records, who writes."""
