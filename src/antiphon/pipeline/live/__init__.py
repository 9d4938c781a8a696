"""What is known of runs that are being watched, kept up part by part. Start with `state.py`; `stream.py` feeds it."""
