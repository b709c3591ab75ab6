"""The library's keywords for editors and type checkers alone: nothing imports this at run time.

Made from the fields that declare the options by `UPDATE_DOCS=1 pytest tests/api/test_keywords.py`; change those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import BinaryIO, Literal, TypedDict

from goodput_cli.accounting.options import DataLoading, Planned
from goodput_cli.analysis.question import Time
from goodput_cli.api.options import Paths, Source
from goodput_cli.sources.base import Progress
from goodput_cli.vocabulary.when import Span, When


class LogOptions(TypedDict, total=False):
    """How to read."""

    log_name: str | None
    """Which log of Cloud Logging; None for both usual ones."""
    lookback_days: float | None
    """How far back to read Cloud Logging; None: as far as the job goes."""
    use_cache: bool
    """Whether entries of Cloud Logging that were read before may be kept and used."""
    mapping: tuple[str, ...]
    """Files that declare log formats."""
    year: int | None
    """The year of stamps without one; None for that of stamps around them, or of the file's last change."""
    clock_start: When | str | None
    """When text in which no line has a time began; None: what it says ends when the file was last changed."""
    tensorboard_tag: str | None
    """The scalar of TensorBoard's event files whose steps are those of training; None for the likeliest."""
    exact_run_name: bool
    """Whether each run of ML Diagnostics or MLflow is a job, even if it likely continues another one."""
    join: bool
    """Whether files of text in one folder are one job, though the later begin anew weeks after the others."""
    hosts_of_job: tuple[str, ...]
    """Patterns of hosts on which the job ran, besides those that lines name: logs of their kernels count."""
    quotes: bool
    """Whether lines that say why an attempt died are quoted; their places are named either way."""
    heartbeats: bool
    """Whether system metrics of ML Diagnostics, 99 in 100 of its entries, are asked of Cloud Logging too."""
    longest_line: int
    """How much of a line is read, MiB; more is left out, and said."""
    stdin: BinaryIO | None
    """The stream behind `-`; None for the standard input of the process."""
    progress: Progress | None
    """Is told how reading goes on."""
    notice: Callable[[str], None] | None
    """Takes sentences for the person who waits."""


class FetchOptions(LogOptions, total=False):
    """How to read, which job's log in Cloud Logging, and what becomes of an earlier snapshot."""

    job_name: str | None
    """The job; may be left out where the logs hold one."""
    update: bool
    """Add to an existing snapshot what is not in it."""
    force: bool
    """Replace an existing file."""


class SharedOptions(LogOptions, total=False):
    """How to read and how to account."""

    timezone: str
    """The zone of times that name none; "auto" for what the entries around them show, else UTC."""
    reference_step_time: str | float | Fraction | None
    """What a step should take, in seconds, exact; "auto" where the log is to give it (accounting §6), and of
    comparisons "baseline" for the median step of that side."""
    data_loading: DataLoading
    """'overlapped', or 'blocking': data loading inside a step claims its time."""
    async_saves: bool
    """Saves of a checkpoint log claim nothing."""
    stall_factor: float
    """A kept step is stalled for what it takes beyond so many usual step times; 0 = off."""
    exclude_stopped: bool
    """Planned stops are taken out of the window too."""
    planned: Planned | None
    """'yes': a stop that a line tells of, and no crash, was planned, though steps were done again; 'no': the
    recorder's job end ends no attempt cleanly that another follows. None: accounting §3 decides."""
    no_hindsight: bool
    """As it was known at the window's end; accounts for the job once more for every end."""
    exclude: Sequence[str | Span]
    """Windows `START/END` to take out."""
    start: Time | None
    """Start of the window; None for the job's."""
    end: Time | None
    """End of the window; None for the job's."""
    as_of: Time | None
    """The answer as it was known then: nothing that was logged later counts. None for all."""
    tokens_per_step: float | None
    """Tokens of one step, of all accelerators together; None for what the log says."""
    peak_tflops: float | None
    """TFLOP/s of one accelerator at its best, for MFU; None for what the log says."""
    accelerator_type: str | None
    """The accelerator, whose best in dense BF16 counts for MFU; None for what the log says."""
    total_steps: int | None
    """Steps at which the job is done; None for what the log says."""


class CompareOptions(SharedOptions, total=False):
    """The same, of runs side by side."""

    baseline: Source | Sequence[Source] | None
    """One of the sources, or one more (then the last side); the first source by default. Three or more: a side
    differs where it lies outside of what these differ by; the first is the one of all tables."""


class JobOptions(SharedOptions, total=False):
    """The same, of one job and one of its runs."""

    job_name: str | None
    """The job; may be left out where the logs hold one."""
    run: int | str | None
    """One run of a job name: a number from 1, or "last"; "all" for all of them as one; "auto" for the last where the
    others said that they were finished, else for all (accounting §10)."""


class ReconcileOptions(JobOptions, total=False):
    """The same, with the reference library beside it."""

    timeout: float
    """Seconds that the reference library may take."""


class AnalyzeOptions(JobOptions, total=False):
    """The same, with rolling windows."""

    window: str | Sequence[str | int]
    """Lengths of rolling windows: "1h", or ns; "auto" (0 here) for a round tenth of the window."""
    every: str | int | None
    """From the end of one rolling window to the next: "30m", or ns; None for the length of the shortest."""


class WatchOptions(AnalyzeOptions, total=False):
    """The same, of a log that grows."""

    interval: float
    """Seconds between two answers; longer where an answer takes longer."""


class AdviseOptions(JobOptions, total=False):
    """The same, of advice on the whole job."""

    save_seconds: float | None
    """What a save blocks, where no line says it."""
    interval_now: int | None
    """Steps between two saves today; None for what the log says."""
    mtbf: float | None
    """Seconds of training between two failures, as the cluster is known for."""
    death: Literal["earliest", "middle", "latest"]
    """The moment of a death that no line shows."""
    spare_seconds: float
    """How soon a spare takes over."""


class FleetOptions(SharedOptions, total=False):
    """How to read, how to account, and how to add up."""

    runs: Literal["auto", "each", "all", "last"]
    """Every run of a name on its own, all of them as one job, or the last; auto: each that said that it was
    finished, else all."""
    distinct_by: Literal["name", "cluster", "source-folder"]
    """What makes two jobs of one name two."""
    last: str | int | None
    """The last DURATION before --to, or before the latest event."""
    alive_within: str | int
    """--as-of counts for runs heard of so shortly before.  [default: 1d]"""
    accelerators: int | None
    """For runs without a number of their own."""
    price_per_hour: str | float | Fraction | None
    """Of an accelerator for an hour, for runs without one."""
    currency: str
    """Of prices."""
    count_unlogged: bool
    """Allocations without a log count as allocated too."""
    saved_only: bool
    """Runtime goodput without progress after the last save."""
    by: Sequence[str]
    """A table by team, cluster, size, week …; team,week crosses two."""
    sizes: str | tuple[int, ...] | None
    """Upper bounds of size classes.  [default: 8,64,512,4096,32768]"""
    failures: str | tuple[str, ...] | None
    """Which ends are failures.  [default: crashed,terminated,silent,slice_down]"""
    weight: Literal["chips", "time"]
    """Whether a run counts by its accelerators, or each the same."""
    top: int
    """How many of the worst disruptions."""
    sort: Literal["lost", "goodput", "name", "hours"]
    """Order of groups."""
    limit: int | None
    """Only the first N groups of a table."""
    labels: Paths
    """Team, cluster, accelerators, price … of jobs: CSV, JSON, JSONL or Parquet; earlier files win."""
    sacct: Paths
    """Allocations from `sacct --parsable2`."""
    allocations: Paths
    """Allocations from a table: job, start, end, accelerators."""
    capacity: Paths
    """What the fleet has: from, to, count, cluster, accelerator."""
