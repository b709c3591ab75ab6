"""Failure messages of many programs have the right cause, and ordinary messages have none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.causes import wordings
from tests.causes.wordings import Wording
from tests.support.draws import drawn

FAILURES = wordings.wordings("failures")
THREADS = wordings.wordings("threads")
ORDINARY = {one.name: one for one in wordings.wordings("ordinary")}


@pytest.mark.parametrize("one", FAILURES, ids=lambda one: one.name)
def test_failure_message_has_its_cause(one: Wording, tmp_path: Path) -> None:
    found = wordings.judged(one, tmp_path)
    assert wordings.verdict(one, found) == "named", (found.cause, found.cause_text)


@pytest.mark.parametrize("one", THREADS, ids=lambda one: one.name)
def test_failure_message_of_a_public_thread_has_its_cause(one: Wording, tmp_path: Path) -> None:
    found = wordings.judged(one, tmp_path)
    assert wordings.verdict(one, found) == "named", (found.cause, found.cause_text)
    assert one.rank in (None, found.first_rank)
    assert one.host in (None, found.first_host)


@pytest.mark.parametrize("shown", [13, 5], ids=["block", "cut"])
@pytest.mark.parametrize(
    "one", [one for one in THREADS if one.rank is not None and one.host is None], ids=lambda one: one.name
)
def test_agent_that_saw_the_rank_fail_keeps_the_cause(one: Wording, shown: int, tmp_path: Path) -> None:
    words = "\n".join((one.text, *wordings.agent(one.rank or 0)[:shown]))
    found = wordings.judged(replace(one, text=words), tmp_path)
    assert wordings.verdict(one, found) == "named", (found.cause, found.cause_text)
    assert found.first_rank == one.rank


SURVIVED = (
    "[rank6]: Traceback (most recent call last):",
    '[rank6]:   File "/opt/eval.py", line 8, in run',
    "[rank6]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 6 has a total of 79 GiB",
    " [2026-03-01 10:10:46.000000] iteration      151/    1000 | elapsed time per iteration (ms): 1000.0 |",
)
WARNINGS = (
    "[rank6]: /opt/data.py:61: RuntimeWarning: invalid value encountered in divide",
    "W0301 10:10:45.102000 812 torch/_dynamo/convert_frame.py:964] torch._dynamo hit config.recompile_limit (8)",
)
ENDED_LATER = (
    "W0301 10:11:20.000000 7 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 818 closing signal "
    "SIGTERM",
    "E0301 10:11:22.000000 8 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 7 "
    "(pid: 819) of binary: /usr/bin/python",
)


@pytest.mark.parametrize(
    "one", [one for one in THREADS if one.rank is not None and one.at != "start"], ids=lambda one: one.name
)
def test_survived_errors_and_later_kills_keep_the_cause(one: Wording, tmp_path: Path) -> None:
    """The log has a warning, a caught error, and a kill of another rank half a minute later."""
    words = (one.text, *wordings.agent(one.rank or 0))
    plain = wordings.judged(replace(one, text="\n".join(words)), tmp_path)
    told = wordings.judged(replace(one, text="\n".join((*SURVIVED, *WARNINGS, *words, *ENDED_LATER))), tmp_path)
    assert (told.cause, told.cause_certainty, told.first_rank, told.first_host) == (
        plain.cause, plain.cause_certainty, plain.first_rank, plain.first_host,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "where"), [*((name, "end") for name in ORDINARY), *((name, "middle") for name in drawn(ORDINARY, 3))]
)
def test_ordinary_message_is_not_the_cause(name: str, where: str, tmp_path: Path) -> None:
    found = wordings.disruption_among(ORDINARY[name], where, tmp_path)
    assert (found.cause, found.cause_text) == ("unknown", None)


@pytest.mark.parametrize("name", drawn(ORDINARY, 2))
def test_ordinary_message_does_not_hide_the_cause(name: str, tmp_path: Path) -> None:
    found = wordings.disruption_among(ORDINARY[name], "other", tmp_path)
    assert (found.cause, found.first_rank) == ("disk_full", 5)
