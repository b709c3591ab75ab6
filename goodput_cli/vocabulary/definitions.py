"""What the numbers of a report other than the categories are, in a sentence each: the words of docs/glossary.md."""

from __future__ import annotations

_TIMES = "\N{MULTIPLICATION SIGN}"

DEFINITIONS: dict[str, str] = {
    "goodput": "productive time over the window without what is excluded; the window is cut to the job",
    "badput": "time in any other category; goodput and badput add up to the window without what is excluded, exactly",
    "cumulative goodput": "goodput from the start of the window up to each instant",
    "rolling goodput": "goodput of a window of one length that ends at each instant",
    "data_loading_async": "data loading inside a step: it overlaps training, is no badput and claims nothing",
    "at_risk": "kept progress after the last completed save, at the end of a log that has saves and no clean end",
    "not recorded": "categories for which the log holds no evidence at all: unknown, not zero",
    "disruption": "a passage from one attempt to the next that does not follow a believed clean end",
    "last sign of life": "the last moment at which an attempt is known to have been running",
    "lost steps": "steps of the log that had to be trained again; wasted is the time they had taken",
    "downtime": (
        "from an attempt's last training until the next attempt is up, as far as that is recovery, undetermined or "
        "stopped"
    ),
    "regained": "from the last sign of life until training was past the old last step again",
    "MTBF": "time in which attempts were up, over the number of disruptions; with a 95 % Poisson interval",
    "ETTR": "effective training time ratio: goodput as a fraction",
    "step time": "from one step record to the next of the same attempt, over the steps between them",
    "ideal step time": f"the mean of the step times without the long ones: at most median + 3 {_TIMES} MAD",
    "slow regime": "consecutive steps at a level of the step time that moved up and stayed",
    "slices": "the share of a job's slices that were stepping, or available, over time",
}
