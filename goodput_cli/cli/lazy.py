"""A group whose commands are imported only when they are called: until then a name and a line of help stand for one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

import click


@dataclass(frozen=True)
class Elsewhere:
    """A command in another module.

    module: holds it as a `click.Command` of the command's name (`-` as `_`). summary: the first line of its help.
    """

    module: str
    summary: str

    def load(self, name: str) -> click.Command:
        """The command itself, imported now."""
        command = getattr(import_module(self.module), name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command


class LazyGroup(click.Group):
    """A group that knows where its commands live.

    elsewhere: the commands by name, in the order in which people are shown them. Lists of them (`--help`, completion,
    what somebody may have meant) are made of the summaries.
    """

    def __init__(self, *args: object, elsewhere: Mapping[str, Elsewhere], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._elsewhere = dict(elsewhere)
        for name, command in elsewhere.items():
            self.add_command(click.Command(name, help=command.summary))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is called, imported now."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in self._elsewhere:
            command = self._elsewhere[name].load(name)
        return name, command, rest
