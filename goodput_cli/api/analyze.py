"""`goodput_cli.analyze(...)`: where every second of a job went; the same analysis that the command makes.

`goodput_cli.advise(...)`: how often a job should have saved, what would have bought most, and what if.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Unpack

from goodput_cli.api.options import ANALYZE, JOB, Records, Source, asked, split, takes
from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.units import NS_PER_SECOND

if TYPE_CHECKING:
    from goodput_cli.analysis.advice.advise import Advice
    from goodput_cli.analysis.results import Analysis
    from goodput_cli.analysis.threshold import Expression
    from goodput_cli.api.keywords import AnalyzeOptions, JobOptions


@takes(ANALYZE)
def analyze(
    sources: Source | Sequence[Source] | Records,
    *,
    thresholds: str | Sequence[Expression | str] = (),
    accelerators: float | None = None,
    price_per_hour: float | None = None,
    **options: Unpack[AnalyzeOptions],
) -> Analysis:
    """Read the logs and account for every second of one job.

    sources: files, globs, folders, addresses or `-`, merged; or events that a program has, as a list of dicts or a
    DataFrame with the keys of a log format.
    thresholds: expressions such as "goodput<90", judged in `Analysis.thresholds`. accelerators, price_per_hour: what
    the job holds, and what one of them costs for an hour: `Analysis.insights` then say what was lost in both.
    The options are those of the command; rolling windows (window, every) fill `Analysis.rolling`.

    Raises SourceError (a source cannot be read), UsageError (the question makes no sense) and NotEnoughData (the logs
    cannot answer it); all are GoodputError.
    """
    from goodput_cli.analysis.goodput.thresholds import read_threshold
    from goodput_cli.analysis.question import price_of

    price = price_of(accelerators, price_per_hour)
    reading, question = split(options)
    named = [thresholds] if isinstance(thresholds, str) else thresholds
    expressions = [read_threshold(one) if isinstance(one, str) else one for one in named]
    from goodput_cli.analysis.account import analyze_log

    # No name for the log here: its table is large, and is let go once the events are in order.
    return analyze_log(
        reading.read(sources, question.timezone),
        question,
        reading.job_name,
        expressions,
        price=price,
        asked=asked(sources, reading, question),
    )


@takes(JOB)
def advise(
    sources: Source | Sequence[Source],
    *,
    what_if: Sequence[str] = (),
    save_seconds: float | None = None,
    interval_now: int | None = None,
    mtbf: float | None = None,
    death: Literal["earliest", "middle", "latest"] = "middle",
    spare_seconds: float = 60.0,
    accelerators: float | None = None,
    price_per_hour: float | None = None,
    thresholds: Sequence[str] = (),
    **options: Unpack[JobOptions],
) -> Advice:
    """Analyse a job, replay it, and say what would have bought more goodput.

    what_if: changes `NAME=VALUE` of one scenario, such as "save-every=100". save_seconds: what a save blocks, where no
    line says it. interval_now: steps between two saves today, if it is not to be read from the log. mtbf: s of training
    between two failures, as the cluster is known for. death: the moment that is assumed where none was logged.
    spare_seconds: until a spare takes over. accelerators, price_per_hour: what the job holds, and what one costs.
    thresholds: such as "advice.gain>5pp", judged in `Advice.thresholds`. The others are those of
    `goodput_cli.analyze`; advice is about the whole job, so that start and end are a UsageError.

    Errors are those of `goodput_cli.analyze`; NotEnoughData also where nothing was trained.
    """
    from goodput_cli.analysis.advice.thresholds import parse_advice
    from goodput_cli.analysis.advice.what_if import parse_plan
    from goodput_cli.analysis.question import price_of

    if options.get("start") is not None or options.get("end") is not None:
        raise UsageError("advice is about a whole job: leave start and end out, or name a run")
    price = price_of(accelerators, price_per_hour)
    expressions = [parse_advice(one) for one in thresholds]
    plan = parse_plan(what_if) if what_if else None
    analysis = analyze(sources, **options)
    from goodput_cli.analysis.advice.advise import Options, advise_analysis

    asked = Options(mtbf, round(spare_seconds * NS_PER_SECOND), price, plan)
    save_ns = None if save_seconds is None else round(save_seconds * NS_PER_SECOND)
    return advise_analysis(analysis, asked, death, save_ns, interval_now, expressions).advice
