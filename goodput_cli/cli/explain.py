"""`goodput help NAME`: what a diagnostic, a kind of insights or a category is, where the documents are not at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import fill

from goodput_cli.vocabulary.likely import did_you_mean

_WIDTH = 79


def explain(name: str) -> str | None:
    """Some paragraphs on a name; None where it is the name of nothing."""
    lines = list(_paragraphs(name.strip().lower()))
    if not lines:
        return None
    return "\n".join(fill(line, _WIDTH, subsequent_indent="  ", break_long_words=False) for line in lines)


def suggestion(name: str, commands: Iterable[str] = ()) -> str:
    """What may have been meant, as a question; empty where nothing is like it. commands: those there are."""
    from goodput_cli.analysis.insights.kinds import BY_CODE
    from goodput_cli.diagnostics.codes import CODES
    from goodput_cli.vocabulary.category_names import NAMES

    return did_you_mean(name, (*commands, *CODES, *BY_CODE, *NAMES))


def _paragraphs(name: str) -> Iterator[str]:
    from goodput_cli.analysis.insights.kinds import BY_CODE
    from goodput_cli.diagnostics.codes import CODES
    from goodput_cli.vocabulary.category_names import category_named

    if name in CODES:
        code = CODES[name]
        yield f"{name} ({code.severity}{f', {code.mild} in mild cases' if code.mild else ''}): {code.meaning}"
        yield f"Effect: {code.effect}"
        yield f"Do: {' '.join(code.advices)}"
    if name in BY_CODE:
        kind = BY_CODE[name]
        yield f"insight {name}, {kind.title}: {kind.meaning}"
        yield f"Least: {kind.least_percent:g} % of the window; from: {kind.origin}."
        yield f"Do: {kind.advice}. `goodput {kind.command}` shows more; --fail-if 'insight:{name}>10m' is a gate."
    named = category_named(name)
    if named is not None:
        category, _ = named
        yield f"category {category.id}: {category.row.meaning}."
