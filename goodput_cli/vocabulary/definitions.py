"""What each number of a report is, in a sentence: the rules of docs/accounting.md §2 for categories, and the glossary's
words for the rest. A test compares the categories with the document."""

from __future__ import annotations

_TIMES = "\N{MULTIPLICATION SIGN}"

CATEGORY_MEANINGS: dict[str, str] = {
    "productive": f"training whose progress was kept; with a reference step time: kept steps {_TIMES} reference",
    "program_startup": (
        "what the first stretch of an attempt takes beyond the usual step time: tracing, compilation, warm-up"
    ),
    "tpu_initialization": "accelerator initialisation",
    "training_prep": "preparation before the training loop",
    "data_loading_sync": "loading data while no step is in flight",
    "unproductive_checkpoint_save_time": "saves, as far as they block training",
    "unproductive_checkpoint_restore_time": (
        "restores; in checkpoint logs inferred, start-up included (the report says so)"
    ),
    "wasted_progress_from_disruption": "training that is no part of the job's final progress",
    "infrastructure_recovery_from_disruption": (
        "from an attempt's last sign of life to the next start, and starts that led nowhere"
    ),
    "custom_badput_events": "the user's own blocking events, one row a label (upper case; UNKNOWN where it is missing)",
    "elastic_slice_down": "elastic waits and re-initialisation",
    "elastic_scale_up": "elastic waits and re-initialisation",
    "elastic_reinitialization": "elastic waits and re-initialisation",
    "step_stall": (
        "step logs without a reference: what a kept step took beyond the usual step time, if it took more than "
        f"5 {_TIMES} that (--stall-factor; 0 = off): a hang, a suspended machine, a pause that nobody logged"
    ),
    "training_slowdown": (
        "with a reference: kept training beyond the reference step time; negative where steps were faster, which is "
        "said and never hidden"
    ),
    "disruption_undetermined": (
        "checkpoint logs: an attempt died at a moment that nobody logged, so lost progress and restart cannot be told "
        "apart; the report gives the bounds"
    ),
    "stopped": "from a believed clean end to the next start: planned, not a disruption",
    "queued": (
        "from a user_scheduled line to the next start, if nothing of the job happens in between; to T1 while no start "
        "has come"
    ),
    "excluded": (
        "windows that the user took out (--exclude), and with --exclude-stopped planned stops; no part of the 100 %"
    ),
    "other": "none of these; a step still in flight at T1 is here too",
}
"""By category name, in the order in which people are shown them. T1 is the end of the last event."""

OTHER_MEANINGS: dict[str, str] = {
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
