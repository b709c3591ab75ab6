"""`goodput doctor`: what this installation can read, and with which credentials."""

from __future__ import annotations

import click

from goodput_cli.cli.console import is_terminal, page_of_terminal, write_output
from goodput_cli.cli.doctor import Finding, examine
from goodput_cli.errors import GoodputError
from goodput_cli.vocabulary.text import safe, wrapped


@click.command(
    epilog="""\b
    Examples:
      goodput doctor
      goodput doctor --online""",
)
@click.option("--online", is_flag=True, help="Try the credentials too; without, nothing is connected to.")
def doctor(online: bool) -> int:
    """Say which extras, credentials and settings are there.

    Exits with 1 where what is there does not work. Without credentials nothing is broken.
    """
    findings = list(examine(online=online))
    width = max(len(one.what) for one in findings)
    room = page_of_terminal().width - 1 if is_terminal() else None
    write_output("".join(f"{line}\n" for one in findings for line in _lines(one, width, room)))
    return GoodputError.exit_code if any(one.state == "broken" for one in findings) else 0


def _lines(finding: Finding, width: int, room: int | None) -> list[str]:
    """width: of what was looked at. room: columns of the terminal; None where it is none."""
    head = f" {finding.state:<7}  {finding.what:<{width}}  "
    line = head + safe(finding.detail)
    return [line] if room is None else wrapped(line, room, " " * len(head))
