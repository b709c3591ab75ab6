"""A seeded generator of realistic training-job logs: for samples, tests and benchmarks; not part of the product.

>>> from loggen import Scenario, write_log
>>> with open("run.jsonl", "wb") as stream:
...     truth = write_log(Scenario(seed=7, lines=10_000), stream)
"""

from loggen.dress import BadLine
from loggen.scenario import Ending, Entry, Model, PlannedAttempt, Scenario
from loggen.write import Truth, log_bytes, write_log

__all__ = ["BadLine", "Ending", "Entry", "Model", "PlannedAttempt", "Scenario", "Truth", "log_bytes", "write_log"]
