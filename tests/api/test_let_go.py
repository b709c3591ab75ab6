"""The log is released once its events are in order: no caller may keep its table."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
import goodput_cli.analysis.account
import goodput_cli.api.options
from goodput_cli.events.schema import EventLog

LOG = Path(__file__).parent.parent.parent / "sample_logs" / "primer-50-percent.jsonl"


def test_analyze_keeps_no_log_while_it_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    logs: list[weakref.ref[EventLog]] = []
    alive: list[bool] = []
    read, account = goodput_cli.api.options.Reading.read, goodput_cli.analysis.account.account_for

    def remember(*arguments: Any) -> EventLog:
        log = read(*arguments)
        logs.append(weakref.ref(log))
        return log

    def watch(*arguments: Any) -> Any:
        alive.append(logs[-1]() is not None)
        return account(*arguments)

    monkeypatch.setattr(goodput_cli.api.options.Reading, "read", remember)
    monkeypatch.setattr(goodput_cli.analysis.account, "account_for", watch)
    goodput_cli.analyze(LOG)
    assert alive == [False]
