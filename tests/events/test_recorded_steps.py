"""Lines `phases` of goodput's recorder: step breakdowns by rank, without an effect on the ledger."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.step_breakdown.breakdown import StepBreakdown
from goodput_cli.analysis.step_breakdown.sheet import inside_line
from goodput_cli.events.inside import MOST_PHASES, NOT_LOGGED
from tests.support.logs import T0, codes, read_lines

Line = dict[str, Any]


def phases(last: int, steps: int, rank: int = 0, *, after: float | None = None, **more: Any) -> Line:
    """Return a line about steps of 1 s each."""
    line = {"job_name": "j", "goodput_event": "phases", "goodput_time": T0 + (last + 1 if after is None else after)}
    line |= {"run_id": f"life-{rank}", "rank": rank, "host": f"node-{rank // 2}", "first_step": 0}
    return {**line, "step": last, "steps": steps, "step_seconds": float(steps), **more}


def events(steps: int = 102) -> Iterator[Line]:
    """Yield the lines of rank 0 for steps of 1 s, with a save."""
    yield {"job_name": "j", "goodput_event": "attempt", "goodput_time": T0 - 10, "run_id": "life-0", "rank": 0}
    yield {"job_name": "j", "job_start_time": T0 - 10}
    for step in range(steps):
        yield {"job_name": "j", "step_count": step, "step_start_time": T0 + step}
    yield {"job_name": "j", "job_end_time": T0 + steps}


def of_ranks(ranks: int = 4, apart: float = 0) -> Iterator[Line]:
    """Yield lines of all ranks. Rank 1 loads 300 ms per step, others 20; its clock is that of others plus `apart`."""
    for rank in range(ranks):
        for last, steps in ((0, 1), (25, 25), (50, 25), (75, 25), (100, 25), (101, 1)):
            data = 0.3 if rank == 1 else 0.02
            more = {"phase_data": data * steps, "phase_train": (0.95 - data) * steps}
            more |= {} if rank else {"tokens": 1000 * steps, "samples": 8 * steps, "flops": 1e15 * steps}
            yield phases(last, steps, rank, after=last + 1 + apart * rank, **more)


def analyze(folder: Path, *lines: Line) -> Analysis:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return goodput_cli.analyze(str(path))


def inside(analysis: Analysis) -> StepBreakdown:
    (one,) = analysis.step_phases
    return one


def seconds(analysis: Analysis) -> dict[str, tuple[float, float]]:
    """Return seconds and share by phase."""
    return {
        row.logged or row.phase: (row.slowest_ns / 1e9, round(row.percent or 0, 6)) for row in inside(analysis).phases
    }


def test_slow_loader_is_reported(tmp_path: Path) -> None:
    one = inside(analyze(tmp_path, *events(), *of_ranks()))
    assert (one.steps, one.net_step_ns, one.first_step_ns) == (101, 101_000_000_000, 1_000_000_000)
    assert [row.phase for row in one.phases] == ["train", "data", "other"]
    data = one.phase("data")
    assert data is not None
    assert (data.slowest_ns, data.percent) == (30_300_000_000, 30)
    worst = one.ranks[0]
    assert (worst.rank, worst.host, worst.cost_ns) == (1, "node-0", 101 * 280_000_000)
    assert all(not row.cost_ns for row in one.ranks[1:])


def test_work_is_measured_per_step(tmp_path: Path) -> None:
    log = read_lines(tmp_path, *events(), *of_ranks())
    found = {one.name: set(one.value.tolist()) for one in log.table.metrics}
    assert found == {"tokens_per_step": {1000}, "samples_per_step": {8}, "flops_per_step": {1e15}}
    assert [one.step.tolist() for one in log.table.metrics] == [[0, 25, 50, 75, 100, 101]] * 3


def test_ledger_is_identical_with_and_without_phases(tmp_path: Path) -> None:
    texts = []
    for lines in (list(events()), [*events(), *of_ranks(), phases(7, 0), phases(8, 1, phase_data=-1, host=3)]):
        lines.sort(key=lambda line: max(float(value) for key, value in line.items() if key.endswith("_time")))
        analysis = analyze(tmp_path, *lines)
        answer = analysis.to_dict()
        of_ledger = [answer[key] for key in ("goodput", "badput", "steps", "window", "job", "reference", "thresholds")]
        texts.append(json.dumps([of_ledger, analysis.segments.drop(columns=["evidence"], errors="ignore").to_csv()]))
    assert texts[0].count("productive") > 0
    assert texts[0] == texts[1]


def test_result_is_independent_of_file_order_and_clocks(tmp_path: Path) -> None:
    expected = inside(analyze(tmp_path, *events(), *of_ranks()))
    lines = [*events(), *of_ranks(apart=3600.0), *of_ranks(apart=3600.0)]  # each twice
    random.Random(7).shuffle(lines)
    for at in range(3):
        text = "".join(json.dumps(line) + "\n" for line in lines[at::3])
        (tmp_path / "logs").mkdir(exist_ok=True)
        (tmp_path / "logs" / f"part-{at}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    assert inside(goodput_cli.analyze(str(tmp_path / "logs"))) == expected


def test_records_with_different_ends_are_summed(tmp_path: Path) -> None:
    """Steps of rank 1 are so long that it writes every 25th; those of rank 0 are slightly shorter."""
    short = [phases(0, 1, phase_data=0.02), phases(100, 100, phase_data=2)]
    long = [phases(0, 1, 1, phase_data=0.3), *(phases(25 * at, 25, 1, phase_data=7.5) for at in range(1, 5))]
    log = read_lines(tmp_path, *events(), *short, *long)
    assert [one.step.tolist() for one in log.table.inside] == [[0, 100], [0, 100]]
    assert inside(analyze(tmp_path, *events(), *short, *long)).ranks[0].cost_ns == 28_000_000_000


def test_attempts_with_one_first_step_match_by_number(tmp_path: Path) -> None:
    lines = [
        phases(last, 1, rank, after=after, run_id=f"{rank}-{life}", phase_data=0.5)
        for life, after in enumerate((1.0, 2000.0))
        for rank in (0, 1)
        for last in (0, 1)
    ]
    log = read_lines(tmp_path, *events(), *lines)
    assert sorted((one.rank, one.process) for one in log.table.inside) == [
        (0, (0, 0)), (0, (0, 1)), (1, (0, 0)), (1, (0, 1)),
    ]  # fmt: skip


def test_part_of_a_phase_is_shown_inside_it(tmp_path: Path) -> None:
    more: Line = {"phase_forward_backward": 20.0, "phase_forward_backward/data": 5.0, "phase_data": 1.0}
    analysis = analyze(tmp_path, *events(), phases(0, 1), phases(25, 25, **more))
    shown = seconds(analysis)
    assert shown["forward_backward"] == (20, 80)
    assert shown["forward_backward/data"] == (5, 20)
    assert shown["other"] == (4, 16)


def test_claimed_loading_is_not_counted_as_goodput(tmp_path: Path) -> None:
    lines = []
    for step in range(51):
        lines.append({"job_name": "j", "step_count": step, "step_start_time": T0 + 10 * step})
        lines.append({"job_name": "j", "data_loading_start_time": T0 + 10 * step + 5, "between_steps": True})
        lines.append({"job_name": "j", "data_loading_end_time": T0 + 10 * step + 9})
    lines += [{"job_name": "j", "job_end_time": T0 + 510}]
    for last, steps in ((0, 1), (25, 25), (50, 25)):
        lines.append(phases(last, steps, after=10 * last + 10, step_seconds=10 * steps, phase_data=4 * steps))
    analysis = analyze(tmp_path, *lines)
    assert seconds(analysis)["data"] == (200, 40)
    (insight,) = (one for one in analysis.insights if one.code == "input_bound")
    assert insight.in_goodput_ns == 0
    assert inside_line(analysis) is None


BAD: list[tuple[dict[str, Any], str]] = [
    ({"phase_data": -0.5}, "`phase_data` is not a duration in seconds; ignored"),
    ({"phase_data": "0.5"}, "`phase_data` is not a duration in seconds; ignored"),
    ({"phase_data": True}, "`phase_data` is not a duration in seconds; ignored"),
    ({"phase_data": 1e30}, "`phase_data` is not a duration in seconds; ignored"),
    ({"phase_data": 500.0}, "`phase_data` is longer than its steps; ignored"),
    ({"step_seconds": -1}, "`step_seconds` is not a duration in seconds; ignored"),
    ({"tokens": -3}, "`tokens` is not an amount of work; ignored"),
    ({"flops": "many"}, "`flops` is not an amount of work; ignored"),
    ({"rank": 1 << 20}, "phases without a valid `step`, `steps`, `first_step` or `rank`; dropped"),
    ({"rank": -1}, "phases without a valid `step`, `steps`, `first_step` or `rank`; dropped"),
    ({"steps": 0}, "phases without a valid `step`, `steps`, `first_step` or `rank`; dropped"),
    ({"step": 2.5}, "phases without a valid `step`, `steps`, `first_step` or `rank`; dropped"),
]


@pytest.mark.parametrize(("more", "message"), BAD)
def test_impossible_values_are_dropped_and_reported(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    log = read_lines(tmp_path, *events(), phases(0, 1, phase_train=0.5), {**phases(100, 100, phase_train=50.0), **more})
    assert codes(log) == {"bad_phase"}
    (one,) = log.diagnostics
    assert (one.message, one.count) == (message, 1)
    assert one.where[0].endswith(":107")
    assert all((part.ns >= NOT_LOGGED).all() and not (part.ns == -500_000_000).any() for part in log.table.inside)
    assert len(log.table) == 104


def test_names_are_limited_and_hosts_are_escaped(tmp_path: Path) -> None:
    many = {f"phase_n{at}\x1b": 0.001 for at in range(200)}
    log = read_lines(tmp_path, *events(), phases(0, 1, 0, host="\x1b[31m" * 99, **many), phases(0, 1, 1, phase_zz=0.1))
    names = {name for one in log.table.inside for name in one.names}
    assert len(names) == MOST_PHASES
    assert all(name.name.isprintable() for name in names)
    assert {len(one.host) for one in log.table.inside} <= {0, 6, 80}
    assert codes(log) == {"bad_phase"}


def test_rarest_phases_are_dropped_beyond_the_limit(tmp_path: Path) -> None:
    """Each record has five unique names, which sort before the two names in all records."""
    own: list[Line] = [{f"phase_a{at}_{number}": 0.001 for number in range(5)} for at in range(100)]
    lines = [phases(at, 1, phase_data=0.1, phase_train=0.2, **names) for at, names in enumerate(own)]
    log = read_lines(tmp_path, *events(), *lines)
    (inside,) = log.table.inside
    names = [name.name for name in inside.names]
    assert len(names) == MOST_PHASES
    assert {"data", "train"} <= {*names}
    (left_out,) = [one for one in log.diagnostics if one.code == "bad_phase"]
    assert left_out.message == f"more than {MOST_PHASES} names of phases; only the most frequent are read"
    assert left_out.count == 88


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.integers(), st.floats(), st.text(max_size=9),
    st.lists(st.integers(), max_size=2),
)  # fmt: skip
KEYS = st.sampled_from(
    ["step", "steps", "first_step", "rank", "host", "run_id", "step_seconds", "phase_data", "phase_", "phase_a/b",
     "phase_a/", "tokens", "goodput_time", "phase_step", "phase_other"]
)  # fmt: skip


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=6), max_size=8))
def test_random_lines_give_no_traceback_or_negative_phase(
    tmp_path_factory: Any, mutations: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("bad")
    lines = [{**phases(at, 1, at % 2, phase_data=0.5), **more} for at, more in enumerate(mutations)]
    analysis = analyze(folder, *events(12), *lines)
    for one in analysis.step_phases:
        assert all(row.slowest_ns >= 0 and (row.percent or 0) >= 0 for row in one.phases)
        assert (one.net_step_ns or 0) >= 0
    assert analysis.goodput.ns == analyze(folder, *events(12)).goodput.ns


def test_log_of_other_ranks_has_no_event(tmp_path: Path) -> None:
    log = read_lines(tmp_path, phases(0, 1, 1, phase_data=0.5))
    assert (len(log.table), len(log.table.inside), codes(log)) == (0, 1, set())
    with pytest.raises(goodput_cli.NotEnoughData):
        analyze(tmp_path, phases(0, 1, 1, phase_data=0.5))
