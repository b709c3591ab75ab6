"""What a shell offers after TAB where click cannot know it by itself: names of files, formats and categories."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem


class FileName(click.ParamType[Any]):
    """A name that the shell completes as that of a file. It may be a glob or an address as well, so nothing is checked.

    Not `click.Path`: a repeated option's environment variable holds several names with `;` between them, as those of
    other options do.
    """

    name = "text"
    envvar_list_splitter = ";"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        return [CompletionItem(incomplete, type="file")]


FILE = FileName()


def complete_format(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The formats that can be written, those of plug-ins among them."""
    from goodput_cli.report.base import format_names

    return _beginning_with(incomplete, format_names())


def complete_category(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The categories. `custom:LABEL` is left out: nobody knows the labels before a log is read."""
    from goodput_cli.vocabulary.categories import CATEGORIES

    return _beginning_with(incomplete, CATEGORIES)


def _beginning_with(incomplete: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete.lower())]
