"""The public API: `Member`, `Group`, events and settings."""
