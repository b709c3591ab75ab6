"""`goodput monitor`: live goodput in Prometheus, TensorBoard and Cloud Monitoring, from a process beside the job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from goodput_cli.analysis.goodput.phrases import threshold_lines
from goodput_cli.analysis.goodput.thresholds import parse_fail_under, read_threshold
from goodput_cli.analysis.threshold import Expression
from goodput_cli.cli.console import print_messages, print_safely, raise_again, raise_what_was_lost
from goodput_cli.cli.group import FILE
from goodput_cli.cli.options import (
    Checked,
    CommandLine,
    GroupedCommand,
    option,
    options_of,
    shared_options,
    threshold_options,
)
from goodput_cli.cli.session import FilesRead, Once, Verbosity, remarks, sources_of
from goodput_cli.diagnostics.diagnostic import problems
from goodput_cli.errors import ProblemsFound, UsageError
from goodput_cli.monitor.plan import MONITOR, Plan
from goodput_cli.vocabulary.text import safe

if TYPE_CHECKING:
    from goodput_cli.analysis.goodput.analysis import Analysis
    from goodput_cli.api.keywords import JobOptions
    from goodput_cli.monitor.targets.base import Address, Health, TargetWorker


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
    tensorboard:DIR or gcm:PROJECT. Exits with 0 when all jobs have ended or after
    SIGTERM, 1 if a target did not take the last update, 3 if a threshold failed in
    it, 4 if there was no event at all.""",
)
@shared_options(
    output=False,
    leave_out=("as_of",),
    several={"job_name": "Only jobs whose names match the glob; may be repeated."},
)
@option(
    MONITOR, "--publish", "targets", metavar="TARGET", type=Checked("target", _target), multiple=True,
    help="Where to publish; repeatable.  [required]",
)  # fmt: skip
@options_of(Plan, "plan")
@option(
    MONITOR,
    "--history",
    metavar="SOURCE",
    type=FILE,
    multiple=True,
    help="A log of earlier attempts, read once; repeatable.",
)
@option(MONITOR, "--gcm-location", metavar="ZONE", help="For gcm: where this runs.  [default: the machine's zone]")
@option(MONITOR, "--gcm-accelerator", metavar="TYPE", help="For gcm: such as TPU-v5p.  [default: the machine's]")
@option(MONITOR, "--gcm-replica", metavar="ID", default="0", help="For gcm: of several replicas.  [default: 0]")
@option(MONITOR, "--gcm-cluster", metavar="NAME", help="For gcm: a label cluster_name.")
@option(
    MONITOR, "--nice", metavar="N", type=click.IntRange(0, 19), default=10, help="Give way to the job.  [default: 10]"
)
@option(
    MONITOR, "--parent", metavar="PID", type=int, hidden=True, help="End when this process is not the parent any more."
)
@option("Out", "--quiet", "-q", is_flag=True, help="No diagnostics.")
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
    """Publish a running job's goodput, from a process beside it.

    SOURCE is followed as `goodput watch` does, and each job that it holds by itself. Every value is computed from the
    log anew, so that a restart counts nothing twice; the job never notices the monitor. It ends when all jobs have.
    """
    only = job_name[0] if len(job_name) == 1 and not _GLOB.intersection(job_name[0]) else None
    sources = sources_of(line, job_name[:1] if only else (), hint="name the log to follow")
    if not targets:
        from goodput_cli.monitor.targets.base import FORMS

        raise UsageError(f"name with --publish where the numbers go: {FORMS}")
    with suppress(OSError):
        os.nice(nice)
    from goodput_cli.api.watch import Watched
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
    once = Once()
    running = Monitor(
        partial(Watched, sources, once=history, **options),
        workers,
        plan,
        names=job_name,
        health=health,
        stop=stop,
        tell=lambda diagnostics: print_messages(remarks(Verbosity(quiet=quiet), once.new(diagnostics))),
        say=print_safely,
    )
    try:
        with stop.listening():
            code, analyses = running.run()
    finally:
        running.close()
    return _last_words(analyses, code, quiet=quiet, strict=line.strict)


def _last_words(analyses: Sequence[Analysis], code: int, *, quiet: bool, strict: bool) -> int:
    """Say how the thresholds were judged at the end; the exit code."""
    for analysis in analyses:
        about = f"{analysis.job.name}: " if len(analyses) > 1 else ""
        print_messages(f"{safe(about)}{text}" for text in threshold_lines(analysis.thresholds, with_passes=not quiet))
    found = [one for analysis in analyses for one in analysis.diagnostics]
    if not code and strict and problems(found):
        print_messages(remarks(Verbosity(quiet=True, strict=quiet), found))
        return ProblemsFound.exit_code
    return code


def _open(
    targets: Sequence[Address], health: Health, interval: float, job_name: str | None, labels: dict[str, str]
) -> list[TargetWorker]:
    """Open all targets. Raises GoodputError, and UsageError, if one cannot be."""
    from goodput_cli.monitor.targets.base import MonitorContext, TargetWorker, open_target

    place = MonitorContext(health, interval, job_name, labels, print_safely, FilesRead.of_command().check)
    opened = [open_target(address, place) for address in targets]
    shown = [address.shown for address in targets]
    names = [  # two webhooks of one host fare each by itself
        name if name not in shown[:at] else f"{name} ({shown[:at].count(name) + 1})" for at, name in enumerate(shown)
    ]
    return [TargetWorker(name, target, health, print_safely) for name, target in zip(names, opened, strict=True)]
