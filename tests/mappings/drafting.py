"""Helpers for drafts: logs of a custom program, and their analysis with a drafted mapping."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.api.check import draft_mapping
from tests.text.support import analysed

BEGIN = datetime(2026, 3, 1, 10)


def at(second: float, form: str) -> str:
    return (BEGIN + timedelta(seconds=second)).strftime(form)


def drafted(tmp_path: Path, text: str, name: str = "train.log", **options: object) -> Analysis:
    """Return the analysis of a log with the mapping drafted from it."""
    log, own = tmp_path / name, tmp_path / "my.toml"
    log.write_text(text, encoding="utf-8", newline="")
    own.write_text(draft_mapping(str(log)).text, encoding="utf-8")
    return analysed(log, mapping=own, **options)


def pytorch(second: float, text: str, level: str = "INFO") -> str:
    return f"{at(second, '%Y-%m-%d %H:%M:%S')},{round(second * 1000) % 1000:03d} {level} __main__: {text}\n"
