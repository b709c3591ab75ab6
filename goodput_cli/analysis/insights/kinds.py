"""The kinds of insights, declared once: thresholds, reports, JSON and docs/insights.md all follow from the rows.

No NumPy here: thresholds are checked before any work.

An insight: what happened, when, what it cost, which lines show it, and what to do.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from goodput_cli.analysis.question import Price
from goodput_cli.analysis.written import Amount, Count, Instant, Json, written

_STATED = "ours: less is nothing to act on"
_BUDGET = "ours: what a well-kept run stays below"


@dataclass(frozen=True)
class InsightKind:
    """All that is declared of a kind of insights."""

    code: str
    """Its name in JSON and in thresholds (`insight:CODE`)."""
    title: str
    """What people see as its heading."""
    meaning: str
    """When it is stated, and which seconds it has."""
    advice: str
    """What to do, where the finder does not say it better."""
    command: str
    """The command that shows more, with its options."""
    least_percent: float
    """Of the window: an insight that cost less is left out."""
    origin: str
    """Where that limit, and any other that the kind has, comes from."""
    needs: tuple[str, ...] = ()
    """Measures of which the log must have one, or nobody can tell; none where every log tells."""


KINDS = (
    InsightKind(
        "several_runs", "several runs of one name",
        "The name was used again from the start, behind an end: the time between the runs, and what the earlier ones "
        "had trained.",
        "ask about one run alone", "analyze", 1, "accounting §10: runs",
    ),
    InsightKind(
        "older_checkpoint", "older checkpoint restored",
        "A newer checkpoint was complete and an older one was restored: the training in between, which was wasted.",
        "restore the newest complete checkpoint", "disruptions", 0.5, _STATED, ("saves.count",),
    ),
    InsightKind(
        "failed_saves", "saves that were never complete",
        "Saves began and were not complete when their attempt died (where lines say when a save is complete): the "
        "training that the newest of them would have kept, and that was wasted.",
        "see why these saves do not complete, before saving more often", "timeline", 0.5, _STATED, ("saves.count",),
    ),
    InsightKind(
        "failing_starts", "starts that die again and again",
        "Three attempts or more died within a minute of their start, or before a first step: what they cost, and the "
        "time until the next start.",
        "see what the first of them died of before starting again", "disruptions", 0.5,
        "ours: three in a row are no accident, and a minute is less than any start-up takes",
    ),
    InsightKind(
        "repeat_host", "deaths on the same host",
        "Three deaths or more are of one host, for causes that a host can have, more than chance explains: less than "
        "1 % by an exact binomial test with each host's share of the time up, over all hosts (Holm). Only where all "
        "hosts of the job are listed (NodeList of sacct). What these deaths cost.",
        "drain this host and test it", "disruptions", 0.5, "docs/causes.md",
    ),
    InsightKind(
        "same_step", "deaths in the same step",
        "Three attempts or more died in the same step, not at a save, and none for a reason that no step can have: "
        "what their deaths cost.",
        "look at what this step does: its data, its batch, an evaluation; saving more often does not help",
        "disruptions", 0.5, "ours: three in the same step are no accident", ("steps.count",),
    ),
    InsightKind(
        "long_outage", "nothing ran for long",
        "One downtime that is longer than three times the median of the others, and the training it took back.",
        "see what it waited for; an automatic restart and spare nodes end such outages", "disruptions", 2,
        "ours: three times the usual is no longer luck",
    ),
    InsightKind(
        "disruptions", "disruptions",
        "All other disruptions: their downtime, and the training that they took back.",
        "see how each one ended", "disruptions", 1, _STATED,
    ),
    InsightKind(
        "rare_saves", "saves too rare",
        "Training between the newest save and a failure, where saves are twice as far apart as Young's formula says.",
        "see whether to save more often", "advise", 1,
        "Young (1974): sqrt(2 x cost of a save x MTBF); half or twice that costs 25 % more than the best interval",
        ("saves.time",),
    ),
    InsightKind(
        "frequent_saves", "saves too frequent",
        "Time in saves, where they are less than half as far apart as Young's formula says.",
        "see whether to save less often, or in the background", "advise", 1, "as rare_saves", ("saves.time",),
    ),
    InsightKind(
        "hang", "steps that hang",
        "Steps that took more than --stall-factor usual ones and a minute beyond one, without a line that says why: "
        "what is beyond a usual step, be the step kept or wasted; of the step in flight at a death too, where "
        "heartbeats went on. Long steps of which a job has ever fewer the longer they are count only where they cost "
        "3 %.",
        "see what the ranks did then, and set a watchdog", "timeline", 0.5, "accounting §5: --stall-factor",
        ("steps.count",),
    ),
    InsightKind(
        "hung_now", "a step hangs now",
        "No end was logged, heartbeats go on, and no step began for longer than --stall-factor usual ones: the time "
        "since the last line that was none.",
        "see what the ranks do now, before it is stopped: stacks of all processes, and the network", "timeline", 0.5,
        "accounting §5: --stall-factor", ("steps.count",),
    ),
    InsightKind(
        "periodic", "long steps at equal distances",
        "Eight steps or more that lie the same number of steps apart, at least five, take a quarter longer than a "
        "usual step: what is beyond it. Every step must be recorded.",
        "see what the program does in these steps: garbage collection, logs, evaluations, a new epoch", "timeline", 1,
        "ours: eight periods in the same phase are no accident", ("steps.count",),
    ),
    InsightKind(
        "drift", "steps that become slower all the time",
        "Of 200 step times and 5 h, a line that rises by 5 % fits better than levels do: what kept steps took beyond "
        "its beginning.",
        "see what grows: memory, caches, logs, the temperature", "steps", 1,
        "accounting §8; a second is of a drift or of slow steps, never both", ("steps.count",),
    ),
    InsightKind(
        "slow_saves", "slow saves",
        "Of eight saves or more, the last third takes 1.5 x as long as the first (what is beyond that), or single ones "
        "take 5 x the median and a minute more (what is beyond it).",
        "see what the storage did then", "timeline", 1, "ours: what a well-kept run stays below", ("saves.time",),
    ),
    InsightKind(
        "slow_steps", "slow steps",
        "Kept steps that were slower than usual for long (with a reference step time: training_slowdown).",
        "compare hosts and data of these steps with those before, if it was not meant (sequence length, batch)",
        "steps", 1,
        "accounting §8: levels that differ by 5 % and stay", ("steps.count", "training_slowdown"),
    ),
    InsightKind(
        "given_up", "training that was given up",
        "Wasted training that no disruption took back: a planned return to an older step, or a run started anew.",
        "if the runs belong apart, ask for one with --run last", "timeline", 1, _STATED,
    ),
    InsightKind(
        "startups", "slow starts",
        "Initialisation, preparation and first steps beyond a tenth of the window.",
        "cache compiled programs, and keep images and data near", "timeline", 10, _BUDGET,
        ("program_startup", "tpu_initialization", "training_prep"),
    ),
    InsightKind(
        "restores", "slow restores", "Restores beyond a twentieth of the window.",
        "restore from nearer storage, or from peers", "timeline", 5, _BUDGET, ("unproductive_checkpoint_restore_time",),
    ),
    InsightKind(
        "evals", "much evaluation", "Evaluations beyond a tenth of the window.",
        "evaluate less often, or beside training", "advise", 10, _BUDGET, ("custom_badput_events",),
    ),
    InsightKind(
        "custom_events", "much time in custom events", "Another label of custom events beyond a tenth of the window.",
        "see whether training has to wait for it", "timeline", 10, _BUDGET, ("custom_badput_events",),
    ),
    InsightKind(
        "input_bound", "waiting for data",
        "Loading data while no step is in flight, beyond a twentieth of the window; and loading beside steps during "
        "more than a tenth of the step time, of which nobody knows how much training waits for.",
        "prefetch more, or read from nearer storage", "timeline", 5, _BUDGET,
        ("data_loading_sync", "data_loading_async"),
    ),
    InsightKind(
        "planned_stops", "planned stops",
        "The job was ended, and started again later: the time between.",
        "planned: nothing to mend; this is the job without them", "analyze", 1, "accounting §5: stopped",
    ),
    InsightKind(
        "queued", "waiting in the queue", "Time in the queue beyond a twentieth of the window.",
        "ask for what is free, or keep a reservation", "timeline", 5, _BUDGET, ("queued",),
    ),
    InsightKind(
        "elastic", "waiting for slices", "Elastic waits and re-initialisation beyond a twentieth of the window.",
        "shorten the wait, or go on with fewer slices", "timeline", 5, _BUDGET,
        ("elastic_slice_down", "elastic_scale_up", "elastic_reinitialization"),
    ),
    InsightKind(
        "undetermined", "wasted training or downtime, nobody can tell",
        "Time before disruptions of which no line says when they began: wasted training or restart.",
        "log how each attempt ends, or each step", "check", 1, _STATED,
    ),
    InsightKind(
        "unexplained", "time that no line explains", "Time in `other`.",
        "log start-up, saves, loading and evaluations as they begin and end", "timeline", 2, _STATED,
    ),
    InsightKind(
        "dead_job", "no sign of life",
        "The end of the window, where nothing ended the job and no line came for ten minutes and more than "
        "--stall-factor usual steps.",
        "see whether the job still runs; --as-of the last line leaves the silence out", "timeline", 0.5,
        "ours: ten minutes of silence; accounting §5: --stall-factor",
    ),
)  # fmt: skip
"""Every kind, in the order of the documents. Answers are in the order of cost."""
BY_CODE: Mapping[str, InsightKind] = {kind.code: kind for kind in KINDS}
LEAST_NS = 60 * 10**9
"""An insight of less than a minute is left out: nobody would act on it."""


_HELD_BY_NOBODY = frozenset({"queued"})


@dataclass(frozen=True)
class About:
    """The rows of the report that an insight is about, by the names they have there: at most some of each."""

    disruptions: tuple[int, ...] = ()
    """Numbers of disruptions of the job, from 1."""
    steps: tuple[int, ...] = ()
    """Steps that hung, the worst first, or the first steps of slow regimes."""
    categories: tuple[str, ...] = ()
    """Rows of the ledger: `step_stall`, `custom_badput_events:EVAL_STEP`."""


@dataclass(frozen=True)
class Candidate:
    """What a finder saw, before it is put against the window."""

    code: str
    """Of a kind."""
    ns: int
    """What it cost; no two insights count the same time."""
    text: str
    """What happened, in a sentence without a stop. It may hold text of the log."""
    start_ns: int
    end_ns: int
    """From when to when it happened."""
    count: int = 1
    """How many things it is about."""
    rows: tuple[int, ...] = ()
    """Rows of the table that show it."""
    about: About = About()
    """Disruptions, steps and categories that show it."""
    options: tuple[str, ...] = ()
    """Of the command that shows more."""
    command: str | None = None
    """That command, if it is not the kind's."""
    advice: str | None = None
    """What to do, if not what the kind says."""
    in_goodput_ns: int = 0
    """The part of `ns` that counts as goodput all the same: training that was kept, though it was slow."""


@written(
    "insight_part",
    "what happened, what it cost and what to do; no second is in two insights",
    keys=(
        "code title text advice seconds ns in_goodput_ns percent start_ns end_ns count evidence disruptions "
        "steps categories typed_command accelerator_hours cost"
    ),
)
@dataclass(frozen=True)
class Insight:
    """What a person reads. `ns` is what it cost, exact, from the ledger, and no second is in two insights; what is
    measured against a usual step is rounded once."""

    code: Annotated[str, Meta(extra_json_schema={"enum": list(BY_CODE)})]
    """which kind it is"""
    text: str
    """what happened"""
    advice: str
    """what to do"""
    ns: Count
    """what it cost"""
    in_goodput_ns: Annotated[Count, Json("seconds", key="ns_in_goodput")]
    """of seconds: what counts as goodput all the same, since it is training that was kept, though slow"""
    percent: Amount
    """of the window without exclusions"""
    start_ns: Instant
    """when it began"""
    end_ns: Instant
    """from when to when it happened"""
    count: Count
    """how many things it is about"""
    evidence: tuple[str, ...]
    """file:line or insertId of the first lines that show it"""
    command: tuple[str, ...]
    """The command that shows more, word by word, without the logs."""
    source: tuple[str, ...]
    """The logs and the job as they were named, for that command; empty where they came from a program."""
    about: About = About()
    """The rows of other tables that show it."""
    price: Price | None = None
    """What the accelerators cost."""

    @property
    def kind(self) -> InsightKind:
        """What is declared of its kind."""
        return BY_CODE[self.code]

    @property
    def title(self) -> str:
        """its kind in a few words"""
        return self.kind.title

    @property
    def seconds(self) -> Amount:
        return self.ns / 1e9

    @property
    def disruptions(self) -> tuple[Count, ...]:
        """numbers of the disruptions that show it, at most 100"""
        return self.about.disruptions

    @property
    def steps(self) -> tuple[int, ...]:
        """steps that show it: those that hung, or with which a slow regime began"""
        return self.about.steps

    @property
    def categories(self) -> tuple[str, ...]:
        """rows of badput that it is about, a custom event as custom_badput_events:LABEL"""
        return self.about.categories

    @property
    def typed_command(self) -> Annotated[str, Json(key="command")]:
        """the command that shows more"""
        return self.command_line()

    @property
    def accelerator_hours(self) -> Annotated[Amount | None, Json(missing=None)]:
        """seconds x accelerators, in hours; null without --accelerators, and in the queue"""
        return None if self.price is None or self.code in _HELD_BY_NOBODY else self.price.hours(self.ns)

    @property
    def cost(self) -> Annotated[Amount | None, Json(missing=None)]:
        """accelerator_hours x price; null without --price-per-hour"""
        return None if self.price is None or self.code in _HELD_BY_NOBODY else self.price.money(self.ns)

    def command_line(self, source: str | None = None) -> str:
        """The command as it is typed. source: what stands for the logs, if not their names."""
        name, *options = self.command
        logs = shlex.join(self.source) if source is None and self.source else source or "LOG"
        return " ".join(("goodput", name, logs, *map(shlex.quote, options)))
