"""`goodput doctor`: what this installation can read, and with which credentials."""

from __future__ import annotations

import click

from goodput_cli.cli.console import write_output
from goodput_cli.cli.doctor import examine
from goodput_cli.errors import GoodputError
from goodput_cli.vocabulary.text import safe


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
    write_output("".join(f" {one.state:<7}  {one.what:<{width}}  {safe(one.detail)}\n" for one in findings))
    return GoodputError.exit_code if any(one.state == "broken" for one in findings) else 0
