"""What several commands share: output, progress, tables, worker pools."""
