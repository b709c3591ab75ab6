"""The names of levers. No NumPy here, as `--help` reads this."""

from __future__ import annotations

from collections.abc import Mapping

LEVERS: Mapping[str, bool] = {
    "interval": False,
    "async_saves": False,
    "newest_checkpoint": False,
    "failures": True,
    "starts_that_hold": True,
    "restart": True,
    "restore": True,
    "downtime": True,
    "spares": True,
    "evals": True,
    "data_loading": False,
    "stalls": False,
    "slow_steps": False,
    "longest_outage": True,
    "checkpoint_bound": True,
}
"""Each with whether every record says something about it, be it that it buys nothing; `levers.judged_levers` knows
when a record says something about the others. There is one more for each `custom:LABEL`."""
