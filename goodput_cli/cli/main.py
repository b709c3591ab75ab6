"""The command `goodput`. Only this module turns errors into messages and exit codes.

0 success, 1 failure, 2 wrong usage, 3 a gate failed, 4 inconclusive, 5 `--strict` found problems, 130 interrupted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from goodput_cli.cli.console import INTERRUPTED, WORD, prepare_streams, print_error, print_message
from goodput_cli.cli.group import LazyCommand, LazyGroup
from goodput_cli.errors import GoodputError, error_from_os, is_of_machine, to_install
from goodput_cli.vocabulary.text import safe

DISTRIBUTION = "goodput-cli"
DEBUG_VARIABLE = "GOODPUT_DEBUG"
COMMANDS = {
    "analyze": LazyCommand("job", "Show where a job's time went (the default command)."),
    "rolling": LazyCommand("job", "Show goodput over time, in rolling windows."),
    "timeline": LazyCommand("job", "Show what the job did when, with the log lines."),
    "disruptions": LazyCommand("job", "List the disruptions: losses, causes, log lines."),
    "steps": LazyCommand("job", "Show step times, slow periods and the step breakdown."),
    "advise": LazyCommand("job", "Recommend a checkpoint interval, and rank improvements."),
    "compare": LazyCommand("compare", "Compare runs, and explain the difference."),
    "jobs": LazyCommand("compare", "List the jobs in the logs, with their goodput."),
    "fleet": LazyCommand("fleet", "Report goodput across many jobs."),
    "check": LazyCommand("logs", "Find problems in logs, and how to fix them."),
    "reconcile": LazyCommand("compare", "Compare results with ml-goodput-measurement."),
    "fetch": LazyCommand("logs", "Download logs into a local snapshot."),
    "watch": LazyCommand("live", "Follow a running job on the terminal."),
    "monitor": LazyCommand("live", "Publish the goodput of a running job."),
    "doctor": LazyCommand("doctor", "Check the installation: extras, credentials, settings."),
    "record": LazyCommand("record", "Write one event of a job, from a launcher script."),
}
"""Every command, in the order of `--help`."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code. Errors are printed, not raised, except bugs under GOODPUT_DEBUG."""
    prepare_streams()
    try:
        return int(goodput.main(args=arguments, prog_name="goodput", standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        print_message(error.format_message())
        return error.exit_code
    except click.UsageError as error:
        _report_wrong_usage(error)
        return error.exit_code
    except click.ClickException as error:
        print_error(error.format_message())
        return error.exit_code
    except GoodputError as error:
        return _report_error(error)
    except (KeyboardInterrupt, click.Abort):
        print_message(WORD)
        return INTERRUPTED
    except MemoryError:
        print_error("not enough memory for this log", tip="analyze a part of it, or use a machine with more memory")
        return GoodputError.exit_code
    except Exception as error:
        return _report_other_error(error)


@click.group(
    cls=LazyGroup,
    elsewhere=COMMANDS,
    default="analyze",
    context_settings={"max_content_width": 100},
    epilog="""\b
    Examples:
      goodput run.jsonl          (the same as goodput analyze run.jsonl)
      goodput help analyze
      goodput analyze logs/ --job-name llm-7b --format json
      goodput analyze run.jsonl --fail-under 85
      goodput rolling run.jsonl --window 1h --every 10m
      goodput disruptions run.jsonl --accelerators 256 --price-per-hour 4.20
      goodput timeline run.jsonl --around disruption:3 --events
      goodput compare baseline.json run.jsonl --fail-if goodput:-2pp
      goodput check run.jsonl""",
)
@click.version_option(None, "-V", "--version", package_name=DISTRIBUTION, message="goodput %(version)s")
def goodput() -> None:
    """Show where the time of an ML training job went.

    goodput reads the logs of training jobs. It assigns every second to exactly one category: productive training, or
    a kind of badput.
    """


def _report_other_error(error: Exception) -> int:
    """Print an error from outside this package: a hidden Ctrl-C, a missing package, an error of the machine, or a
    bug."""
    if _is_interrupted(error):
        print_message(WORD)
        return INTERRUPTED
    if isinstance(error, ImportError):
        return _report_missing_package(error)
    return _report_machine_error(error) if isinstance(error, OSError) and is_of_machine(error) else _report_bug(error)


def _is_interrupted(error: BaseException) -> bool:
    """Return True if Ctrl-C caused an error: while a module is imported, Python 3.11 wraps it in a RuntimeError."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, KeyboardInterrupt):
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or cause.__context__
    return False


def _report_error(error: GoodputError) -> int:
    print_error(error.message, cause=error.cause, tip=error.tip)
    return error.exit_code


def _report_wrong_usage(error: click.UsageError) -> None:
    """Print the error, and what to do: the tip of the error, a similar name, or the help of the command."""
    message, tip = error.format_message().removesuffix("."), getattr(error, "tip", "")
    if isinstance(error, click.NoSuchOption):
        message = f"no such option: {error.option_name}"
        if removed := _removed(error):
            message, tip = removed
        elif error.possibilities:
            tip = f"did you mean {' or '.join(sorted(error.possibilities))}?"
    if not tip and error.ctx is not None:
        tip = f"{error.ctx.command_path} --help"
    print_error(f"{message[:1].lower()}{message[1:]}", tip=tip)


def _removed(error: click.NoSuchOption) -> tuple[str, str] | None:
    """Return the error and the tip for a removed option; None for other options."""
    from goodput_cli.errors import REMOVED_OPTIONS

    command, tip = REMOVED_OPTIONS.get(error.option_name, ("", ""))
    if error.ctx is None or command != error.ctx.info_name:
        return None
    return f"{error.option_name} was removed", tip


def _report_machine_error(error: OSError) -> int:
    """Print an error of the machine, such as a full disk."""
    from traceback import walk_tb

    place = os.fsdecode(error.filename) if error.filename else ""
    if any(frame.f_code is click.echo.__code__ for frame, _ in walk_tb(error.__traceback__)):
        place = "cannot write to standard output"  # a help text
    return _report_error(error_from_os(place, error))


def _report_missing_package(error: ImportError) -> int:
    """Print that a dependency is missing. A missing module of this package is a bug."""
    package = (error.name or "goodput_cli").partition(".")[0]
    if package == "goodput_cli":
        return _report_bug(error)
    print_error(f"the package {package} is missing or broken", tip=f"install goodput again: {to_install()}")
    return GoodputError.exit_code


def _report_bug(error: Exception) -> int:
    """Print one sentence about a bug; with GOODPUT_DEBUG, raise the error."""
    if os.environ.get(DEBUG_VARIABLE, "") not in ("", "0"):
        raise error
    print_error(
        f"internal error in goodput {_version()} ({type(error).__name__}: {safe(str(error))[:300]})",
        cause="This is a bug",
        tip=f"Please report it with the output of the same command under {DEBUG_VARIABLE}=1",
    )
    return GoodputError.exit_code


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "(not installed)"
