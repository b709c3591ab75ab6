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
from goodput_cli.vocabulary.when import Span, TimeArgument


class LogOptions(TypedDict, total=False):
    """Options for reading logs."""

    log_name: str | None
    """Cloud Logging log to read. None: both default logs."""
    lookback_days: float | None
    """Days to read back in Cloud Logging. None: to the start of the job."""
    use_cache: bool
    """Cache entries of Cloud Logging, and use cached ones."""
    mapping: tuple[str, ...]
    """TOML files that declare log formats."""
    year: int | None
    """Year of timestamps without one. None: that of nearby timestamps, or of the file's last change."""
    clock_start: TimeArgument | str | None
    """Start time of a log without timestamps. None: it ends when the file was last changed."""
    tensorboard_tag: str | None
    """TensorBoard scalar whose steps are the training steps. None: the most likely one."""
    exact_run_name: bool
    """Treat each run of ML Diagnostics or MLflow as a job, even if it continues another run."""
    join: bool
    """Treat all text files in a folder as one job, whatever the gap between them."""
    hosts_of_job: tuple[str, ...]
    """Patterns of more hosts of the job, whose kernel logs count."""
    quotes: bool
    """Quote the log lines that show failure causes. Their locations are always shown."""
    heartbeats: bool
    """Read system metrics of ML Diagnostics, 99 % of its entries in Cloud Logging."""
    longest_line: int
    """Longest part of a line to read, in MiB. The rest is left out and reported."""
    stdin: BinaryIO | None
    """Stream for the source `-`. None: standard input."""
    progress: Progress | None
    """Callback that receives reading progress."""
    notice: Callable[[str], None] | None
    """Callback for status messages."""


class FetchOptions(LogOptions, total=False):
    """Options of `fetch`."""

    job_name: str | None
    """Job to analyze. Optional if the logs contain one job."""
    update: bool
    """Add new lines to an existing snapshot."""
    force: bool
    """Replace an existing file."""


class SharedOptions(LogOptions, total=False):
    """Options for reading and accounting."""

    timezone: str
    """Time zone of times without one. "auto": that of nearby log entries, otherwise UTC."""
    reference_step_time: str | float | Fraction | None
    """Expected time of a step in seconds, "auto" (from the log) or, in comparisons, "baseline"."""
    data_loading: DataLoading
    """'blocking' counts data loading inside steps as badput; 'overlapped' does not."""
    async_saves: bool
    """Do not count saves in a checkpoint log as badput."""
    stall_factor: float
    """A step longer than this multiple of the usual step time counts as a stall. 0: off."""
    exclude_stopped: bool
    """Exclude planned stops from the window."""
    planned: Planned | None
    """Treat ambiguous stops between attempts as planned ('yes') or failures ('no'). None: automatic."""
    no_hindsight: bool
    """Show each window as it was known at its end (slower)."""
    exclude: Sequence[str | Span]
    """Windows `START/END` to exclude from the accounting."""
    start: Time | None
    """Start of the window. None: the job's start."""
    end: Time | None
    """End of the window. None: the job's end."""
    as_of: Time | None
    """Ignore everything logged after this time. None: use all lines."""
    tokens_per_step: float | None
    """Tokens per step, over all accelerators. None: from the log."""
    peak_tflops: float | None
    """Peak TFLOP/s of one accelerator, for MFU. None: from the log."""
    accelerator_type: str | None
    """Accelerator, for its peak in dense BF16. None: from the log."""
    total_steps: int | None
    """Number of steps of the whole job, for the ETA. None: from the log."""


class CompareOptions(SharedOptions, total=False):
    """Options of `compare`."""

    baseline: Source | Sequence[Source] | None
    """Baseline to compare against. Three or more show the usual range. None: the first source."""


class JobOptions(SharedOptions, total=False):
    """Options for one job and one of its runs."""

    job_name: str | None
    """Job to analyze. Optional if the logs contain one job."""
    run: int | str | None
    """Run of a job name: a number from 1, "last", "all" (as one job) or "auto"."""


class ReconcileOptions(JobOptions, total=False):
    """Options of `analyze`, and those of the reference library."""

    timeout: float
    """Time limit for the reference library in seconds."""


class AnalyzeOptions(JobOptions, total=False):
    """Options of `analyze`."""

    window: str | Sequence[str | int]
    """Lengths of rolling windows, such as "1h" or ns. "auto": a tenth of the job, rounded up."""
    every: str | int | None
    """Time between the ends of rolling windows, such as "30m" or ns. None: the shortest length."""


class WatchOptions(AnalyzeOptions, total=False):
    """Options of `watch`."""

    interval: float
    """Seconds between two updates. Longer if an update takes longer."""


class AdviseOptions(JobOptions, total=False):
    """Options of `advise`."""

    save_seconds: float | None
    """Seconds that a save blocks training, if it is not logged."""
    interval_now: int | None
    """Current checkpoint interval in steps. None: from the log."""
    mtbf: float | None
    """Seconds of training between failures, if known from the cluster."""
    death: Literal["earliest", "middle", "latest"]
    """Assumed failure time if it is not logged."""
    spare_seconds: float
    """Time until a spare node takes over."""


class FleetOptions(SharedOptions, total=False):
    """Options of `fleet_report`."""

    runs: Literal["auto", "each", "all", "last"]
    """Count each run of a job name, all of them as one job, only the last, or decide automatically."""
    distinct_by: Literal["name", "cluster", "source-folder"]
    """Label that distinguishes jobs with the same name."""
    last: str | int | None
    """Use the last DURATION before --to or before the latest event."""
    alive_within: str | int
    """Apply `as_of` only to runs with events this shortly before, such as "1d" or ns."""
    accelerators: int | None
    """Accelerators of runs without a number in logs or labels."""
    price_per_hour: str | float | Fraction | None
    """Price per accelerator and hour, for runs without one."""
    currency: str
    """Currency of prices."""
    count_unlogged: bool
    """Count allocations without a log as allocated time."""
    saved_only: bool
    """Do not count progress after the last checkpoint."""
    by: Sequence[str]
    """Add a table by team, cluster, size, week …; team,week combines two. Repeatable."""
    sizes: str | tuple[int, ...] | None
    """Upper limits of size classes.  [default: 8,64,512,4096,32768]"""
    failures: str | tuple[str, ...] | None
    """Ends that count as failures.  [default: crashed,terminated,silent,slice_down]"""
    weight: Literal["chips", "time"]
    """Weigh runs by accelerators x time (chips) or by time."""
    top: int
    """Number of disruptions to list, the worst first."""
    sort: Literal["lost", "goodput", "name", "hours"]
    """Order of groups."""
    limit: int | None
    """Show only the first N groups of a table."""
    labels: Paths
    """Read labels of jobs, such as team and price, from CSV, JSON or Parquet; repeatable."""
    sacct: Paths
    """Read allocations from the output of `sacct --parsable2`."""
    allocations: Paths
    """Read allocations from a table: job, start, end, accelerators."""
    capacity: Paths
    """Read the fleet's capacity: from, to, count, cluster, accelerator."""
