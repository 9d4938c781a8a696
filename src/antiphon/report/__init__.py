"""Self-contained HTML pages: `page.py` about a run directory, `compare_page.py` about a comparison of protocols.

`collect.py` gathers a page's contents (`model.py`) through Spark. `spacetime.py`, `charts.py` and `bars.py` draw.
"""
