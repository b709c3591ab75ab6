"""docs/compatibility.md: every known difference from the reference library has a log that shows it, with the library's
numbers for it.

`UPDATE_DOCS=1 pytest tests/compat/test_compatibility.py` rewrites the logs and the tables.
"""

from __future__ import annotations

import functools
import textwrap
from typing import Any

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.compat.reconcile import Movement, Reconciliation
from goodput_cli.compat.rules import RULES
from goodput_cli.vocabulary.text import percent, seconds_text
from tests.compat.test_reconcile_library import CLOSE, in_process
from tests.support.differences import LOGS, OPTIONS, text_of
from tests.support.documents import ROOT, read, replace_generated, updating

FOLDER = ROOT / "sample_logs" / "differences"
COMPATIBILITY = ROOT / "docs" / "compatibility.md"
WITHOUT_A_LOG = {"unclaimed", "other_reason"}
"""Rules for all other cases; no log is known that needs them."""
SHOWN = [name for name in LOGS if name in RULES]
REFUSED = [name for name in LOGS if name not in RULES]


@functools.cache
def both(name: str) -> tuple[Analysis, Reconciliation]:
    question: dict[str, Any] = {}
    if name == "excluded":
        question["exclude"] = [OPTIONS[name][1]]
    elif name == "no_reference":
        question["reference_step_time"] = OPTIONS[name][1]
    analysis = goodput_cli.analyze(FOLDER / f"{name}.jsonl", **question)
    return analysis, in_process(analysis)


@pytest.mark.parametrize("name", list(LOGS))
def test_committed_logs_are_up_to_date(name: str) -> None:
    path = FOLDER / f"{name}.jsonl"
    if updating():
        path.write_text(text_of(name), encoding="utf-8", newline="\n")
    assert read(path) == text_of(name)


def test_every_difference_has_a_log() -> None:
    assert set(SHOWN) == RULES.keys() - WITHOUT_A_LOG
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == LOGS.keys()


@pytest.mark.parametrize("name", SHOWN)
def test_log_shows_its_rule_and_is_explained(name: str) -> None:
    _, found = both(name)
    assert name in {one.rule for one in found.movements}
    assert found.answer.failed is None
    assert all(abs(row.not_explained_ns or 0) < CLOSE for row in found.rows)


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_is_a_result(name: str) -> None:
    _, found = both(name)
    assert found.answer.failed
    assert all(row.there_ns is None for row in found.rows)


def test_outage_after_a_checkpoint_is_exact() -> None:
    """Calculated by hand: the job runs from 0 to 1110. There are 19 consecutive steps of 10 s with a gap of 820 s, and
    the last one up to the end: 1010 s are productive there. Here the step before the outage gets its usual 10 s, so 800
    s are recovery, and 10 s from the restart to its first step have no category."""
    _, found = both("outage_productive")
    amounts = {row.category: (row.here_ns // 10**9, round((row.there_ns or 0) / 1e9)) for row in found.rows}
    assert amounts == {
        "productive": (200, 1010),
        "infrastructure_recovery_from_disruption": (800, 0),
        "other": (110, 100),
    }
    assert found.movements[0] == Movement(
        "outage_productive", ("infrastructure_recovery_from_disruption", None), ("productive", None), 800 * 10**9
    )
    assert (found.disruptions_here, found.answer.disruptions) == (1, 0)


def test_document_lists_every_difference() -> None:
    items = []
    for name in RULES:
        if name in WITHOUT_A_LOG:
            continue
        _, found = both(name)
        moved = "; ".join(moves(one) for one in found.movements if one.rule == name)
        options = f" (`{' '.join(OPTIONS[name])}`)" if name in OPTIONS else ""
        items.append(f"- {link(name, RULES[name].title)}{options}: {RULES[name].text} {moved}.")
    replace_generated(COMPATIBILITY, "differences", "".join(map(wrapped, items)))


def test_document_lists_every_refusal() -> None:
    items = []
    for name in REFUSED:
        analysis, found = both(name)
        items.append(f"- {link(name, name)}: `{found.answer.failed}` Here: {percent(analysis.goodput.percent)}.")
    replace_generated(COMPATIBILITY, "refusals", "".join(map(wrapped, items)))


def wrapped(item: str) -> str:
    return textwrap.fill(item, 110, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) + "\n"


def moves(one: Movement) -> str:
    if one.beside is not None:
        return f"{seconds_text(one.ns)} s of `{one.beside[0]}`, also `{one.there[0]}`"
    return f"{seconds_text(one.ns)} s: `{one.here[0]}`→`{one.there[0]}`"


def link(name: str, title: str) -> str:
    return f"[{title}](../{(FOLDER / name).relative_to(ROOT).as_posix()}.jsonl)"
