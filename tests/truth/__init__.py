"""Jobs with known truth, in the formats of seven trainers: the share of correct reports.

A story (`stories.py`) runs second by second in a `World`, a writer prints the output of a program of one format, and
the judge compares the answer with the facts that such a log can show. `make test-truth` has the whole measure.
"""
