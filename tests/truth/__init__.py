"""Jobs whose truth is known, in the formats of seven trainers: how often what is said of them is right.

A story (`stories.py`) is lived second by second in a `World`, a writer prints what a program of one format prints of
it, and the judge holds the answer against what such a log can show. `make test-truth` has the whole measure.
"""
