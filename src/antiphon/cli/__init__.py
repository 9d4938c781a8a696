"""The `antiphon` command. `main.py` handles errors and exit codes; `app.py` lists the commands.

`commands/` has one file for each command; `shared/` has what several commands use.
"""
