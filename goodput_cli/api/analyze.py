"""`goodput_cli.analyze(...)`: where every second of a job went; the same analysis that the command makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from goodput_cli.api.options import AnalyzeOptions, Records, Source, asked, spelled_out, split

if TYPE_CHECKING:
    from goodput_cli.analysis.goodput.thresholds import ThresholdExpression
    from goodput_cli.analysis.results import Analysis


@spelled_out(AnalyzeOptions)
def analyze(
    sources: Source | Sequence[Source] | Records,
    *,
    thresholds: str | Sequence[ThresholdExpression | str] = (),
    accelerators: float | None = None,
    price_per_hour: float | None = None,
    **options: Unpack[AnalyzeOptions],
) -> Analysis:
    """Read the logs and account for every second of one job.

    sources: files, globs, folders, addresses or `-`, merged; or events that a program has, as a list of dicts or a
    DataFrame with the keys of a log format.
    thresholds: expressions such as "goodput<90", judged in `Analysis.thresholds`. accelerators, price_per_hour: what
    the job holds, and what one of them costs for an hour: `Analysis.insights` then say what was lost in both.
    job_name: may be left out when the logs hold one job. run: one run of a job name that was used several times: a
    number from 1, or "last". timezone: of times without a zone, in logs and in arguments.
    reference_step_time: seconds, or "auto" (accounting §6). data_loading: "overlapped" or "blocking". async_saves:
    saves of a checkpoint log claim nothing. stall_factor: how many usual step times are a stall, 0 = off. exclude:
    windows `START/END` to take out; exclude_stopped: planned stops too.
    start, end: the window of the question (default: the job). as_of: what was known then. window: lengths of rolling
    windows ("1h", or ns; "auto" for a round tenth), every: between two of their ends (default: the shortest window);
    they fill `Analysis.rolling`. no_hindsight: everything as it was known at the window's end, rolling windows at the
    end of each (accounting §7).
    log_name, lookback_days, use_cache: for Cloud Logging: which log, how far back (None: as far as the job goes), and
    whether entries read before may be kept and used; heartbeats: whether signs of life of ML Diagnostics are read.
    mapping: files that declare log formats. year, clock_start: of text without either. tensorboard_tag: the scalar
    whose steps count. exact_run_name: each run of ML Diagnostics is a job. stdin: the stream behind `-`. progress: is
    told how reading goes on. notice: takes sentences for the person who waits.

    Raises SourceError (a source cannot be read), UsageError (the question makes no sense) and NotEnoughData (the logs
    cannot answer it); all are GoodputError.
    """
    from goodput_cli.analysis.goodput.thresholds import read_threshold
    from goodput_cli.analysis.price import price_of

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
