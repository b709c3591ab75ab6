"""`event = "sign"` in mappings: moments of a recovery in lines and records, with facts, in addition to other events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goodput_cli.errors import UsageError
from goodput_cli.events.mappings.registry import MappingFile, load_mappings
from goodput_cli.events.read import read_events
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.events.schema import EventLog
from goodput_cli.events.signs import RecoveryPhase

OWN = """\
name = "own"

[[rule]]
event = "step"
line = "{time:time} done {step:int}"

[[rule]]
event = "start"
line = "{time:time} worker up"

[[rule]]
event = "sign"
point = "detected"
line = "{time:time} lost {host} of rank {rank:int}, silent for {wait:float} s"
facts = { timeout = "wait" }

[[rule]]
event = "sign"
point = "workers_started"
line = "{time:time} worker up"

[[rule]]
event = "sign"
point = "decided"
by = "agent"
keys = { time = "ts", rank = "rank" }
where = { what = "again" }
facts = { left = "left", of = "most" }

[[sample]]
line = "2026-05-01 10:05:00 lost node-3 of rank 3, silent for 90.5 s"
gives = { event = "sign", point = "detected", timeout = 90.5, host = "node-3", rank = "3" }

[[sample]]
line = "2026-05-01 10:06:00 worker up"
gives = { event = "start" }

[[sample]]
line = "2026-05-01 10:06:00 worker up"
gives = { event = "sign", point = "workers_started" }

[[sample]]
line = '{"ts": "2026-05-01 10:05:30", "what": "again", "left": 1, "most": 3}'
gives = { event = "sign", point = "decided", by = "agent", left = 1, of = 3 }
"""
LOG = """\
2026-05-01 10:00:00 worker up
2026-05-01 10:01:00 done 1
2026-05-01 10:02:00 done 2
2026-05-01 10:05:00 lost node-3 of rank 3, silent for 90.5 s
{record}
2026-05-01 10:06:00 worker up
2026-05-01 10:07:00 done 3
"""
RECORD = {"ts": "2026-05-01 10:05:30", "what": "again", "left": 1, "most": 3, "rank": 3}


def read(folder: Path, mapping: str, log: str) -> EventLog:
    (folder / "job.log").write_text(log)
    (folder / "own.toml").write_text(mapping)
    hints = ReadingOptions(mapping=(str(folder / "own.toml"),))
    return read_events([str(folder / "job.log")], hints=hints)


def test_sign_rules_give_moments_with_facts(tmp_path: Path) -> None:
    log = read(tmp_path, OWN, LOG.format(record=json.dumps(RECORD)))
    found = [(one.point, one.host, one.rank, dict(one.facts)) for one in log.table.observed.signs]
    assert found == [
        (RecoveryPhase.WORKERS_STARTED, "", None, {}),
        (RecoveryPhase.DETECTED, "node-3", 3, {"timeout_ns": 90_500_000_000}),
        (RecoveryPhase.DECIDED, "", 3, {"by": "agent", "left": 1, "of": 3}),
        (RecoveryPhase.WORKERS_STARTED, "", None, {}),
    ]
    assert {one.job for one in log.table.observed.signs} == set(log.table.jobs)


def test_sign_rules_change_no_event(tmp_path: Path) -> None:
    rules = OWN.split("\n[[")
    without = "\n[[".join(one for one in rules if '"sign"' not in one)
    logs = [read(tmp_path, mapping, LOG.format(record="")) for mapping in (OWN, without)]
    assert [log.table.time.tolist() for log in logs] == [logs[0].table.time.tolist()] * 2
    assert [log.table.kind.tolist() for log in logs] == [logs[0].table.kind.tolist()] * 2
    assert not logs[1].table.observed.signs


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ('event = "sign"\nline = "lost {host}"', "a `sign` rule needs a `point`"),
        ('event = "sign"\npoint = "caught_up"\nline = "lost {host}"', "`point` is one of failed"),
        ('event = "start"\npoint = "detected"\nline = "begins here"', "no other rule has one"),
        ('event = "start"\nby = "hand"\nline = "begins here"', "`by` and `facts` are allowed only in a `sign` rule"),
        ('event = "sign"\npoint = "detected"\ntime = "cursor"\nline = "lost after {took:float}"', "needs a time"),
        ('event = "sign"\npoint = "detected"\nalso = true\nline = "lost {host}"', "no `also`"),
        ('event = "sign"\npoint = "detected"\nline = "lost {host}"\nfacts = { left = "n" }', "has no field `n`"),
        ('event = "sign"\npoint = "detected"\nline = "lost {host}"\nfacts = { right = "host" }', "right"),
        ('event = "sign"\npoint = "detected"\nby = "nobody"\nline = "lost {host}"', "`by` is one of launcher"),
        ('event = "sign"\npoint = "detected"\nline = "lost {host}"\n[[rule]]\nevent = "sign"\npoint = "decided"\n'
         'line = "lost {host}"', "never used"),
    ],
)  # fmt: skip
def test_mistakes_are_reported(rule: str, said: str) -> None:
    with pytest.raises(UsageError) as mistake:
        load_mappings([MappingFile("own.toml", f'name = "own"\n[[rule]]\n{rule}\n')])
    assert said in str(mistake.value)


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ("timeout = 90.5", "timeout = 91.0", "`gives` has `timeout` = 91.0, but the rule in line 11 gives 90.5"),
        ('"left": 1, "most": 3}', '"left": 1}', "`gives` has `of` = 3, but the rule in line 22 gives nothing"),
        (
            'event = "start" }',
            'event = "start", left = 1 }',
            "`gives` has `left` = 1, but the rule in line 7 gives noth",
        ),
    ],
)
def test_sample_of_a_sign_is_checked(was: str, becomes: str, said: str) -> None:
    with pytest.raises(UsageError) as mistake:
        load_mappings([MappingFile("own.toml", OWN.replace(was, becomes, 1))])
    assert said in str(mistake.value)
