"""The keywords of the library's functions are the options; their completion in editors is generated.

`UPDATE_DOCS=1 pytest tests/api/test_keywords.py` rewrites goodput_cli/api/keywords.py.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.api import options
from goodput_cli.compat.api import RECONCILE
from goodput_cli.fleet.run import FLEET
from goodput_cli.vocabulary.option import DeclaredOption, Keywords
from tests.support.documents import updating

FILE = Path(goodput_cli.__file__).parent / "api" / "keywords.py"
HEAD = '''"""The library's keywords for editors and type checkers alone: nothing imports this at run time.

Made from the fields that declare the options by `UPDATE_DOCS=1 pytest tests/api/test_keywords.py`; change those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import BinaryIO, Literal, TypedDict

from goodput_cli.accounting.options import DataLoading, Planned
from goodput_cli.analysis.question import Time
from goodput_cli.api.options import Paths, Source
from goodput_cli.sources.base import Progress
from goodput_cli.vocabulary.when import Span, TimeArgument
'''
QUOTE, DOUBLE = "'", '"'
ALL = (
    options.LOG, options.FETCH, options.SHARED, options.COMPARE, options.JOB, RECONCILE, options.ANALYZE, options.WATCH,
    options.ADVISE, FLEET,
)  # fmt: skip


def class_of(keywords: Keywords) -> Iterator[str]:
    base = keywords.base.name if keywords.base else "TypedDict"
    yield f"\n\nclass {keywords.name}({base}, total=False):"
    yield f'    """{keywords.doc}"""\n'
    for one in keywords.own:
        yield f"    {one.keyword}: {one.annotation.replace(QUOTE, DOUBLE)}"
        yield from describe(one)


def describe(one: DeclaredOption) -> Iterator[str]:
    """Return the docstring of a field, which editors show next to its name."""
    first, *more = textwrap.wrap(one.about, 110)
    opening = f'    """ {first}' if first.startswith('"') else f'    """{first}'
    yield "\n".join([opening, *(f"    {line}" for line in more)]) + '"""'


def test_editor_completion_agrees_with_the_options() -> None:
    text = "\n".join([HEAD.rstrip(), *(line for each in ALL for line in class_of(each))]) + "\n"
    if updating():
        FILE.write_text(text, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == text, "UPDATE_DOCS=1 pytest tests/api/test_keywords.py"


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("analyze", options.ANALYZE), ("advise", options.ADVISE), ("compare", options.COMPARE), ("jobs", options.JOB),
        ("fleet_report", FLEET), ("check", options.JOB), ("reconcile", RECONCILE), ("fetch", options.FETCH),
        ("watch", options.WATCH),
    ],
)  # fmt: skip
def test_function_shows_each_of_its_options(name: str, keywords: Keywords) -> None:
    function = getattr(goodput_cli, name)
    parameters = inspect.signature(function).parameters
    for one in keywords.all:
        assert (parameters[one.keyword].default, parameters[one.keyword].annotation) == (
            one.argument_default, one.annotation,
        )  # fmt: skip
        lines = [
            line for line in (inspect.getdoc(function) or "").splitlines() if line.startswith(f"    {one.keyword}=")
        ]
        assert len(lines) == 1, one.keyword
        assert lines[0].endswith(f": {one.about}")
        assert len(lines[0]) <= 120, one.keyword


def test_options_of_a_function_have_distinct_names() -> None:
    for keywords in ALL:
        names = [one.keyword for one in keywords.all]
        assert len(names) == len({*names}), keywords.name
