"""The random scenarios of InterGroup: `mixed.py` draws everything, `aimed.py` moments at which rare changes happen."""
