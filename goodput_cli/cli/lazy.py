"""A group whose commands are imported only when they are asked for: `goodput --version` loads none of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click


class LazyGroup(click.Group):
    """A group that knows where its commands live.

    modules: command name -> module that holds it, as a `click.Command` of the same name (`-` as `_`).
    """

    def __init__(self, *args: object, modules: Mapping[str, str], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._modules = dict(modules)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order in which people are shown them."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, imported now."""
        module = self._modules.get(cmd_name)
        if module is None:
            return None
        command = getattr(import_module(module), cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command
