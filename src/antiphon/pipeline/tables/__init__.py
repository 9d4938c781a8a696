"""Silver and gold tables, their schemas, and their export."""
