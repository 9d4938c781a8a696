"""The silver and gold tables: `schemas.py` declares, `silver.py` and `gold.py` make, `export.py` writes them."""
