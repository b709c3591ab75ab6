"""What a linter of event logs looks for, one module a family; the texts of every code are in `analysis/codes.py`."""
