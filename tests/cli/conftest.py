"""Fixtures of the tests of commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.analysis.goodput.analyse import evaluate
from goodput_cli.analysis.goodput.analysis import Analysis
from tests.support.answers import primer


class Library:
    """A stand-in for `goodput_cli.api.analyze` that records its arguments and returns a fixed analysis."""

    def __init__(self) -> None:
        self.analysis = primer()
        self.error: BaseException | None = None
        self.asked: list[dict[str, Any]] = []

    def analyze(self, sources: Any, *, thresholds: Any, **question: Any) -> Analysis:
        self.asked.append({"sources": list(sources), **question})
        if self.error is not None:
            raise self.error
        return replace(self.analysis, thresholds=evaluate(thresholds, self.analysis))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Library:
    """Install the stand-in, in an empty directory."""
    stand_in = Library()
    monkeypatch.setattr("goodput_cli.api.analyze.analyze", stand_in.analyze)
    return stand_in
