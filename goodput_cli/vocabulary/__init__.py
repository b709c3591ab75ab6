"""Words of this project: categories, units, times, safe text. Nothing here imports NumPy."""
