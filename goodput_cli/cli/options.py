"""Options that commands share, and what their values may be.

Everything is checked while the command line is parsed: a typing error costs no reading of logs.
"""

from __future__ import annotations

import math
from typing import Any

import click

from goodput_cli.analysis.goodput.thresholds import ThresholdExpression, parse_fail_under, parse_threshold
from goodput_cli.cli.completion import FILE, complete_format
from goodput_cli.cli.parameters import Checked, Decorated, Decorator, option
from goodput_cli.errors import UsageError
from goodput_cli.report.base import format_names, is_format
from goodput_cli.vocabulary import when
from goodput_cli.vocabulary.zones import load_zone

_WHAT = "What"
MAX_DAYS = 36_500
"""The longest look-back: Cloud Logging keeps no log for a hundred years."""


def positive_seconds_or_auto(text: str) -> str:
    """`auto`, or a positive number of seconds; as typed, so that no digit is lost."""
    if text.strip().lower() == "auto":
        return "auto"
    value = _number(text)
    if value is None or not 0 < value <= 1e9:
        raise UsageError(f"{text!r} is not a step time; write seconds such as 2.5, or auto")
    return text.strip()


def factor(text: str) -> float:
    """A number of 0 or more."""
    value = _number(text)
    if value is None or value < 0:
        raise UsageError(f"{text!r} is not a factor; write a number such as 5, or 0 to switch it off")
    return value


def days(text: str) -> float:
    """A number of days above 0."""
    value = _number(text)
    if value is None or not 0 < value <= MAX_DAYS:
        raise UsageError(f"{text!r} is not a number of days; write one such as 7 or 0.5")
    return value


def run_number(text: str) -> str:
    """`last`, or a number from 1."""
    plain = text.strip().lower()
    if plain == "last" or (plain.isascii() and plain.isdigit() and 0 < len(plain) < 10 and int(plain) > 0):
        return plain
    raise UsageError(f"{text!r} is not a run; runs are numbered from 1, or write last")


def window_length(text: str) -> str:
    """`auto`, or a length of time above 0; as typed."""
    if text.strip().lower() == "auto":
        return "auto"
    return length(text)


def length(text: str) -> str:
    """A length of time above 0; as typed."""
    if when.parse_duration(text) <= 0:
        raise UsageError(f"{text!r}: a length of time above 0 is needed, such as {when.ACCEPTED_DURATIONS}")
    return text.strip()


def format_name(text: str) -> str:
    """The name of a format that can be written."""
    name = text.strip().lower()
    if not is_format(name):
        raise UsageError(f"there is no format {text!r}; use one of {', '.join(format_names())}")
    return name


def warn_threshold(text: str) -> ThresholdExpression:
    """An expression that only warns."""
    return parse_threshold(text, fails=False)


TEXT = Checked("text", str)
TIME = Checked("time", when.parse_when, keep_text=True)
SPAN = Checked("start/end", when.parse_span, keep_text=True)
ZONE = Checked("zone", load_zone, keep_text=True)
STEP_TIME = Checked("seconds|auto", positive_seconds_or_auto)
FACTOR = Checked("number", factor)
DAYS = Checked("days", days)
RUN = Checked("n|last", run_number)
WINDOW = Checked("duration", window_length)
LENGTH = Checked("duration", length)
FORMAT = Checked("format", format_name)
FAIL_UNDER = Checked("percent", parse_fail_under)
FAIL_IF = Checked("expr", parse_threshold)
WARN_IF = Checked("expr", warn_threshold)


def source_options(command: Decorated) -> Decorated:
    """What to analyse."""
    job = option(_WHAT, "--job-name", "-j", metavar="NAME", type=TEXT, help="The job, where the logs hold several.")
    run = option(_WHAT, "--run", metavar="N|last", type=RUN, help="One run of a job name that was used several times.")
    return _source_options(command, job, run)


def side_options(command: Decorated) -> Decorated:
    """What to compare: as `source_options`, with a job and a run for each side."""
    job = option(
        _WHAT,
        "--job-name",
        "-j",
        metavar="NAME",
        type=TEXT,
        multiple=True,
        help="The job: once for all logs, or once a side, in order.",
    )
    run = option(
        _WHAT, "--run", metavar="N|last", type=RUN, multiple=True, help="One run of a job name: once, or once a side."
    )
    return _source_options(command, job, run)


def _source_options(command: Decorated, job: Decorator[Any], run: Decorator[Any]) -> Decorated:
    return _apply(
        command,
        click.argument("source", nargs=-1, type=FILE),
        job,
        option(_WHAT, "--log-file", metavar="FILE", type=FILE, multiple=True, help="One more SOURCE."),
        option(
            _WHAT, "--log-name", metavar="ID", type=TEXT, help="The log in Cloud Logging; default: both usual names."
        ),
        option(
            _WHAT,
            "--lookback",
            "lookback_days",
            metavar="DAYS",
            type=DAYS,
            help="How far back to read Cloud Logging.  [default: the job's start]",
        ),
        option(
            _WHAT,
            "--no-cache",
            "use_cache",
            is_flag=True,
            flag_value=False,
            default=True,
            help="Read Cloud Logging anew and keep nothing of it.",
        ),
        run,
        option(
            _WHAT,
            "--timezone",
            metavar="ZONE",
            type=ZONE,
            default="UTC",
            show_default=True,
            help="Zone of times that name none, in logs and on the command line.",
        ),
        option(_WHAT, "--strict", is_flag=True, help="Exit with 5 if anything in the logs looks wrong."),
    )


def method_options(command: Decorated) -> Decorated:
    """How to account."""
    group = "How"
    return _apply(
        command,
        option(
            group,
            "--reference-step-time",
            metavar="SECONDS|auto",
            type=STEP_TIME,
            help="What a step should take: productive is kept steps times this.",
        ),
        option(
            group,
            "--data-loading",
            type=click.Choice(["overlapped", "blocking"]),
            default="overlapped",
            show_default=True,
            help="Whether loading data inside a step is badput.",
        ),
        option(group, "--async-saves", is_flag=True, help="Checkpoints are saved in the background: no badput."),
        option(
            group,
            "--stall-factor",
            metavar="X",
            type=FACTOR,
            default=5.0,
            help="A step beyond X times the usual is a stall; 0 = off.  [default: 5]",
        ),
        option(group, "--exclude", metavar="START/END", type=SPAN, multiple=True, help="Take a window out."),
        option(group, "--exclude-stopped", is_flag=True, help="Take out the time between a clean end and a start."),
    )


def time_options(command: Decorated) -> Decorated:
    """Which window."""
    group = "When"
    return _apply(
        command,
        option(group, "--from", "start", metavar="TIME", type=TIME, help="Start of the window; default: the job's."),
        option(group, "--to", "end", metavar="TIME", type=TIME, help="End of the window; default: the job's."),
        option(group, "--as-of", metavar="TIME|now", type=TIME, help="Answer as it was known then."),
    )


def window_options(command: Decorated) -> Decorated:
    """Rolling windows."""
    group = "When"
    return _apply(
        command,
        option(
            group,
            "--window",
            metavar="W",
            type=WINDOW,
            multiple=True,
            help="Length of rolling windows, such as 1h; auto for a round tenth.",
        ),
        option(
            group, "--every", metavar="E", type=LENGTH, help="One window ends every E.  [default: the shortest window]"
        ),
        option(
            group,
            "--no-hindsight",
            is_flag=True,
            help="As it was known at the window's end; accounts for the job once more for every end.",
        ),
    )


def output_options(command: Decorated) -> Decorated:
    """What comes out."""
    group = "Out"
    return _apply(
        command,
        option(
            group,
            "--format",
            "format_",
            metavar="FORMAT",
            type=FORMAT,
            shell_complete=complete_format,
            help="Of standard output: table, json, csv, markdown, html … (a wrong name lists all)  [default: table]",
        ),
        option(
            group,
            "--output",
            "-o",
            metavar="FILE",
            type=FILE,
            multiple=True,
            help="Write a file instead; its ending says the format.",
        ),
        option(group, "--force", is_flag=True, help="Overwrite existing output files."),
        option(group, "--quiet", "-q", is_flag=True, help="No diagnostics on standard error."),
        option(group, "--verbose", "-v", is_flag=True, help="Every place of every diagnostic."),
        option(group, "--no-progress", is_flag=True, help="No progress bar."),
    )


def threshold_options(command: Decorated) -> Decorated:
    """What fails the run."""
    group = "Out"
    return _apply(
        command,
        option(group, "--fail-under", metavar="PCT", type=FAIL_UNDER, help="Exit with 3 if goodput is below."),
        option(group, "--fail-if", metavar="EXPR", type=FAIL_IF, multiple=True, help="Exit with 3 if EXPR holds."),
        option(group, "--warn-if", metavar="EXPR", type=WARN_IF, multiple=True, help="Say so if EXPR holds."),
    )


def _apply(command: Decorated, *decorators: Decorator[Any]) -> Decorated:
    """The decorators in the order in which `--help` shows them."""
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
