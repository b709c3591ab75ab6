"""The words of this project: categories, units, instants, safe text. Nothing here imports NumPy."""
