"""Who is in the view: suspicion, agreement on failures, and how views change (docs/spec/newtop.md 9)."""
