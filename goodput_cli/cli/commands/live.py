"""The commands that follow a running job: watch shows it on the terminal, and monitor publishes it to Prometheus,
TensorBoard, Cloud Monitoring and others."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from goodput_cli.analysis.goodput.phrases import diagnostic_lines, threshold_lines
from goodput_cli.analysis.goodput.thresholds import parse_fail_under, read_threshold
from goodput_cli.analysis.threshold import Expression
from goodput_cli.api.options import MONITOR, FollowOptions, Plan
from goodput_cli.cli.console import (
    page_of_terminal,
    print_messages,
    print_safely,
    raise_again,
    raise_what_was_lost,
    write_output,
)
from goodput_cli.cli.group import FILE
from goodput_cli.cli.options import (
    FORMAT,
    OUTPUT,
    CommandLine,
    GroupedCommand,
    ParsedParameter,
    option,
    options_of,
    shared_options,
    threshold_options,
)
from goodput_cli.cli.session import FilesRead, NewDiagnostics, remarks, sources_of
from goodput_cli.diagnostics.diagnostic import problems
from goodput_cli.errors import ProblemsFound, UsageError
from goodput_cli.report.base import is_binary, load_renderer
from goodput_cli.vocabulary.text import safe, safe_lines

if TYPE_CHECKING:
    from goodput_cli.analysis.goodput.analysis import Analysis
    from goodput_cli.api.keywords import JobOptions
    from goodput_cli.api.watch import Update
    from goodput_cli.monitor.targets.base import Address, Health, TargetWorker

_ENTER, _LEAVE, _HOME, _CLEAR_LINE, _CLEAR_REST = "\x1b[?1049h", "\x1b[?1049l", "\x1b[H", "\x1b[K", "\x1b[J"
_LAST_NOTICES = 3


class _StdoutClosed(Exception):
    """The reader of standard output has closed it, as `head` does."""


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput watch run.jsonl
      goodput watch logs/ -j llm-7b --interval 10
      goodput watch gs://bucket/logs/llm-7b --format json >> goodput.jsonl
      goodput watch run.jsonl --updates 1 --as-of now

    Press Ctrl-C to end. Without a terminal, each update is appended when new lines
    arrive; --format json writes one line per update.""",
)
@shared_options(output=False, work=True)
@options_of(FollowOptions, "following")
@option(OUTPUT, "--updates", metavar="N", type=click.IntRange(min=1), help="End after N updates.")
@option(
    OUTPUT,
    "--format",
    "format_",
    metavar="FORMAT",
    type=FORMAT,
    default="table",
    help="Output format: table, json, markdown …",
)
@option(OUTPUT, "--quiet", "-q", is_flag=True, help="Print no diagnostics.")
def watch(line: CommandLine, following: FollowOptions, updates: int | None, format_: str, quiet: bool) -> int:
    """Follow a running job on the terminal.

    SOURCE is a file, a glob, a folder, gs:// or cloud-logging://. goodput reads only new lines, and waits for a file
    that does not exist yet. Files can be truncated, renamed or replaced. Time since the last line counts, unless
    --as-of is set. A pause of a minute and ten usual steps without a step is shown at the top.
    """
    from goodput_cli.api.watch import watch as watch_logs

    sources = sources_of(line, hint="pass the log to follow")
    notices: deque[str] = deque(maxlen=_LAST_NOTICES)
    on_screen = sys.stdout.isatty() and format_ == "table"
    options: JobOptions = {**line.library, "notice": notices.append if on_screen else print_safely}
    options["as_of"] = options.get("as_of") or "now"
    answers = watch_logs(sources, interval=following.interval, **options)
    raise_again()
    show = _screen(notices, ", ".join(sources), quiet) if on_screen else _stream(format_, quiet)
    with suppress(_StdoutClosed), show as showing:
        shown = 0
        for update in answers:
            raise_what_was_lost()
            shown += showing(update)
            diagnostics = update.analysis.diagnostics if update.analysis is not None else ()
            if line.strict and problems(diagnostics):
                print_messages(remarks(diagnostics, quiet=True, strict=quiet))
                return ProblemsFound.exit_code
            if updates is not None and shown >= updates:
                break
    return 0


@contextmanager
def _stream(format_: str, quiet: bool) -> Iterator[Callable[[Update], bool]]:
    """Append updates that contain something new; print diagnostics once on standard error."""
    if is_binary(format_):
        raise UsageError(f"watch cannot write {format_}, which is not text", tip="use goodput analyze -o FILE")
    render = load_renderer(format_)
    once, waiting, written, lead = NewDiagnostics(), "", False, ""

    def show(update: Update) -> bool:
        nonlocal waiting, written, lead
        lead_before, lead = lead, "" if update.analysis is None else _lead(update.analysis)
        if written and not update.changed and bool(lead) == bool(lead_before):
            return False
        if update.analysis is None:
            if update.waiting != waiting:
                print_safely(f"Waiting: {update.waiting}")
            waiting = update.waiting
            return False
        text = render(update.analysis, page_of_terminal())
        if format_ == "table":
            text = lead + str(text)
        if not write_output(json.dumps(json.loads(text)) + "\n" if format_ == "json" else text):
            raise _StdoutClosed
        written = True
        print_messages(remarks(once.new(update.analysis.diagnostics), quiet=quiet))
        return True

    yield show


@contextmanager
def _screen(notices: Iterable[str], named: str, quiet: bool) -> Iterator[Callable[[Update], bool]]:
    """Redraw updates on the alternate screen of the terminal; print the last one at the end."""
    render = load_renderer("table")
    last, below = "", f"watching {safe(named)}; press Ctrl-C to end"

    def show(update: Update) -> bool:
        nonlocal last
        page = page_of_terminal()
        analysis = update.analysis
        last = f"Waiting: {safe_lines(update.waiting)}\n"
        if analysis is not None:
            last = _lead(analysis) + str(render(analysis, page))
        findings = [] if quiet or analysis is None else list(diagnostic_lines(analysis.diagnostics))
        write_output(_frame(f"{last}\n" + "\n".join(findings), "\n".join([*map(safe_lines, notices), below])))
        return True

    write_output(_ENTER + _frame("Reading\n", below))
    try:
        yield show
    finally:
        write_output(_LEAVE + last)


def _lead(analysis: Analysis) -> str:
    """Return the first lines of a live view: the time since the last step, if it is long."""
    from goodput_cli.analysis.insights.training import pause_text

    text = pause_text(analysis.timeline)
    return f" {text}\n\n" if text else ""


def _frame(text: str, foot: str) -> str:
    """Return the text and the foot, cut to the height of the terminal."""
    height = shutil.get_terminal_size((80, 24)).lines
    lines, last = text.splitlines(), foot.splitlines()
    room = max(height - len(last), 1)
    if len(lines) > room:
        lines = [*lines[: room - 1], "… (enlarge the terminal to see the rest)"]
    return _HOME + "\n".join(line + _CLEAR_LINE for line in (lines + last)[:height]) + _CLEAR_REST


_GLOB = frozenset("*?[")


def _target(text: str) -> Address:
    from goodput_cli.monitor.targets.base import parse_target

    return parse_target(text)


@click.command(
    cls=GroupedCommand,
    epilog="""\b
    Examples:
      goodput monitor run.jsonl --publish http://:9464
      goodput monitor logs/ --publish tensorboard:tb --publish prom:goodput.prom
      goodput monitor run.jsonl --publish gcm:my-project --window 1d --window 3d
      goodput monitor 'logs/*.jsonl' --publish http://:9464 --forever
      goodput monitor run.jsonl --publish json:goodput.jsonl --updates 1

    TARGET is prom:FILE, json:FILE, http://HOST:PORT, otlp:URL, webhook:URL,
    tensorboard:DIR or gcm:PROJECT. Exit codes: 0 when all jobs have ended or after
    SIGTERM, 1 if a target rejected the last update, 3 if a gate failed in it, 4 if
    there was no event at all.""",
)
@shared_options(
    output=False,
    work=True,
    leave_out=("as_of",),
    several={"job_name": "Publish only jobs whose names match this glob; repeatable."},
)
@option(
    MONITOR, "--publish", "targets", metavar="TARGET", type=ParsedParameter("target", _target), multiple=True,
    help="Publish to TARGET; repeatable.  [required]",
)  # fmt: skip
@options_of(Plan, "plan")
@option(
    MONITOR,
    "--history",
    metavar="SOURCE",
    type=FILE,
    multiple=True,
    help="Read a log of earlier attempts once; repeatable.",
)
@option(MONITOR, "--gcm-location", metavar="ZONE", help="gcm: location label.  [default: the machine's zone]")
@option(
    MONITOR,
    "--gcm-accelerator",
    metavar="TYPE",
    help="gcm: accelerator label, such as TPU-v5p.  [default: the machine's]",
)
@option(MONITOR, "--gcm-replica", metavar="ID", default="0", help="gcm: replica label.  [default: 0]")
@option(MONITOR, "--gcm-cluster", metavar="NAME", help="gcm: label cluster_name.")
@option(
    MONITOR,
    "--nice",
    metavar="N",
    type=click.IntRange(0, 19),
    default=10,
    help="Niceness of the monitor process.  [default: 10]",
)
@option(
    MONITOR, "--parent", metavar="PID", type=int, hidden=True, help="End when this process is no longer the parent."
)
@option(OUTPUT, "--quiet", "-q", is_flag=True, help="Print no diagnostics.")
@threshold_options(read_threshold, parse_fail_under)
def monitor(
    line: CommandLine,
    job_name: tuple[str, ...],
    targets: tuple[Address, ...],
    plan: Plan,
    quiet: bool,
    nice: int,
    parent: int | None,
    history: tuple[str, ...],
    thresholds: tuple[Expression, ...],
    gcm_location: str | None,
    gcm_accelerator: str | None,
    gcm_replica: str,
    gcm_cluster: str | None,
) -> int:
    """Publish the goodput of a running job.

    Follows SOURCE like `goodput watch`, each job in it separately. Every value is computed from the whole log, so a
    restart counts nothing twice. The monitor does not affect the job, and ends when all jobs have ended.
    """
    only = job_name[0] if len(job_name) == 1 and not _GLOB.intersection(job_name[0]) else None
    sources = sources_of(line, job_name[:1] if only else (), hint="pass the log to follow")
    if not targets:
        from goodput_cli.monitor.targets.base import FORMS

        raise UsageError(f"--publish is required: {FORMS}")
    with suppress(OSError):
        os.nice(nice)
    from goodput_cli.api.watch import WatchedLog
    from goodput_cli.monitor.run import Monitor, Stop
    from goodput_cli.monitor.targets.base import Health

    plan = replace(plan, thresholds=thresholds)
    options: JobOptions = {**line.library, "job_name": only, "notice": print_safely, "as_of": "now"}
    health = Health(plan.interval)
    machine = {
        "location": gcm_location,
        "accelerator": gcm_accelerator,
        "replica": gcm_replica,
        "cluster": gcm_cluster,
    }
    labels = {name: text for name, text in machine.items() if text}
    workers = _open(targets, health, plan.interval, only, labels)
    stop = Stop(parent, plan.grace, raise_what_was_lost)
    raise_again()
    once = NewDiagnostics()
    running = Monitor(
        partial(WatchedLog, sources, once=history, **options),
        workers,
        plan,
        names=job_name,
        health=health,
        stop=stop,
        tell=lambda diagnostics: print_messages(remarks(once.new(diagnostics), quiet=quiet)),
        say=print_safely,
    )
    try:
        with stop.listening():
            code, analyses = running.run()
    finally:
        running.close()
    return _last_words(analyses, code, quiet=quiet, strict=line.strict)


def _last_words(analyses: Sequence[Analysis], code: int, *, quiet: bool, strict: bool) -> int:
    """Print the results of the gates at the end, and return the exit code."""
    for analysis in analyses:
        about = f"{analysis.job.name}: " if len(analyses) > 1 else ""
        print_messages(f"{safe(about)}{text}" for text in threshold_lines(analysis.thresholds, with_passes=not quiet))
    found = [one for analysis in analyses for one in analysis.diagnostics]
    if not code and strict and problems(found):
        print_messages(remarks(found, quiet=True, strict=quiet))
        return ProblemsFound.exit_code
    return code


def _open(
    targets: Sequence[Address], health: Health, interval: float, job_name: str | None, labels: dict[str, str]
) -> list[TargetWorker]:
    """Open all targets. Raises GoodputError, and UsageError, if one cannot be."""
    from goodput_cli.monitor.targets.base import MonitorContext, TargetWorker, check_apart, open_target

    check_apart(targets)
    place = MonitorContext(health, interval, job_name, labels, print_safely, FilesRead.of_command().check)
    opened = [open_target(address, place) for address in targets]
    shown = [address.shown for address in targets]
    names = [  # webhooks on one host are retried independently
        name if name not in shown[:at] else f"{name} ({shown[:at].count(name) + 1})" for at, name in enumerate(shown)
    ]
    return [TargetWorker(name, target, health, print_safely) for name, target in zip(names, opened, strict=True)]
