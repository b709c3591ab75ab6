"""`goodput_cli.analyze(...)`: where every second of a job went; the same analysis that the command makes.

`goodput_cli.advise(...)`: the best checkpoint interval of a job, and the improvements that would help most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from goodput_cli.analysis.question import AdviceQuestion
from goodput_cli.api.options import ADVISE, ANALYZE, Records, Source, command_line_of, parsed_options, split, takes
from goodput_cli.errors import UsageError

if TYPE_CHECKING:
    from goodput_cli.analysis.advice.advise import Advice
    from goodput_cli.analysis.goodput.analysis import Analysis
    from goodput_cli.analysis.threshold import Expression
    from goodput_cli.api.keywords import AdviseOptions, AnalyzeOptions


@takes(ANALYZE)
def analyze(
    sources: Source | Sequence[Source] | Records,
    *,
    thresholds: str | Sequence[Expression | str] = (),
    accelerators: float | None = None,
    price_per_hour: float | None = None,
    draft: bool = True,
    **options: Unpack[AnalyzeOptions],
) -> Analysis:
    """Read logs and account for every second of one job.

    sources: files, globs, folders, addresses or `-`, which are merged. Events of a program can be passed as a list of
    dicts or a DataFrame with the keys of a log format.
    thresholds: expressions such as "goodput<90", judged in `Analysis.thresholds`.
    accelerators, price_per_hour: the number of accelerators and the price of one per hour, for costs in
    `Analysis.insights`.
    draft: infer rules for a log of an unknown format (`Analysis.inferred_rules`). False: raise NotEnoughData instead.
    The options are those of the command. Rolling windows (window, every) are in `Analysis.rolling`.

    Raises SourceError (a source cannot be read), UsageError (wrong arguments) or NotEnoughData (the logs do not contain
    the answer). All of them are GoodputError.
    """
    from goodput_cli.analysis.goodput.thresholds import read_threshold
    from goodput_cli.analysis.question import price_of

    price = price_of(accelerators, price_per_hour)
    reading, question = split(options)
    named = [thresholds] if isinstance(thresholds, str) else thresholds
    expressions = [read_threshold(one) if isinstance(one, str) else one for one in named]
    from goodput_cli.analysis.account import analyze_log
    from goodput_cli.api.draft import DraftedReading

    read = DraftedReading(sources, reading, question.timezone)
    # No name for the log here: its table is large, and is let go once the events are in order.
    analysis = analyze_log(
        read.log() if draft else reading.read(sources, question.timezone),
        question,
        reading.job_name,
        expressions,
        price=price,
        asked=command_line_of(sources, reading, question),
    )
    return read.marked(analysis)


@takes(ADVISE)
def advise(
    sources: Source | Sequence[Source],
    *,
    accelerators: float | None = None,
    price_per_hour: float | None = None,
    thresholds: Sequence[str] = (),
    draft: bool = True,
    **options: Unpack[AdviseOptions],
) -> Advice:
    """Recommend a checkpoint interval, and rank improvements.

    accelerators, price_per_hour: the number of accelerators and the price of one per hour.
    thresholds: expressions such as "advice.gain>5pp", judged in `Advice.thresholds`.
    draft: as in `analyze`. Advice covers the whole job: start and end raise UsageError.

    Raises the errors of `goodput_cli.analyze`, and NotEnoughData if nothing was trained.
    """
    from goodput_cli.analysis.advice.advise import advice_options, advise_analysis
    from goodput_cli.analysis.goodput.thresholds import parse_advice
    from goodput_cli.analysis.question import price_of

    if options.get("start") is not None or options.get("end") is not None:
        raise UsageError("advice covers a whole job", tip="remove start and end, or set run")
    price = price_of(accelerators, price_per_hour)
    expressions = [parse_advice(one) for one in thresholds]
    question, of_job = parsed_options(AdviceQuestion, options)
    said = advice_options(question, price)
    analysis = analyze(sources, draft=draft, **of_job)
    return advise_analysis(analysis, said, question.death, question.save_ns, question.interval_now, expressions)
