"""Mappings beyond lines and fields: custom clocks, epochs, progress bars, text in records."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

import goodput_cli
from tests.text.support import analysed, codes, seconds, written

STEP = "\n[[rule]]\nevent = 'step'\n"


def mapping(folder: Path, text: str, name: str = "my") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(f'name = "{name}"\n{text}', encoding="utf-8")
    return path


def test_times_in_a_custom_format_are_a_clock(tmp_path: Path) -> None:
    """Timestamps that are not detected without a mapping: day before month, and steps of 5 s on the third of
    February."""
    log = (
        "".join(f"03/02/2026 10:00:{5 * n:02d} - step {n} done\n" for n in range(1, 6)) + "03/02/2026 10:00:50 - bye\n"
    )
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    own = mapping(tmp_path, "time = { format = '%d/%m/%Y %H:%M:%S' }\n" + STEP + "line = 'step {step:int} done'\n")
    analysis = analysed(tmp_path / "train.log", mapping=own)
    assert seconds(analysis) == {"productive": 20}
    assert analysis.job.start_ns == 1_770_112_805 * 10**9  # 2026-02-03 10:00:05
    assert "no_clock" not in codes(analysis)


def test_yearless_timestamps_take_the_year_of_the_file(tmp_path: Path) -> None:
    log = "".join(f"Mar  1 10:00:{5 * n:02d} node1 python[7]: step {n} done\n" for n in range(1, 6))
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    own = mapping(tmp_path, "time = { format = '%b %d %H:%M:%S' }\n" + STEP + "line = 'step {step:int} done'\n")
    analysis = analysed(tmp_path / "train.log", mapping=own, year=2025)
    assert analysis.job.start_ns == 1_740_823_205 * 10**9  # 2025-03-01 10:00:05


def stamped(second: int, text: str) -> str:
    return f"2026-03-01 10:{second // 60:02d}:{second % 60:02d},000 INFO {text}\n"


def test_steps_that_restart_with_each_epoch(tmp_path: Path) -> None:
    """The counter falls three times without a restart: 400 steps in one attempt."""
    numbers = [(epoch, step) for epoch in range(1, 5) for step in (50, 100)]
    log = "".join(stamped(10 * n, f"Epoch {e}/4 | Step {s}/100") for n, (e, s) in enumerate(numbers))
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    own = mapping(tmp_path, STEP + "line = 'Epoch {epoch:int}/{_} | Step {step:int}/{of:int}'\n")
    analysis = analysed(tmp_path / "train.log", mapping=own)
    assert (analysis.job.attempts, analysis.job.kept_steps) == (1, 350)
    assert seconds(analysis) == {"productive": 70}


@pytest.mark.parametrize("first", [0, 1])
def test_epoch_may_be_on_an_earlier_line(tmp_path: Path, first: int) -> None:
    """Keras: bars without the epoch number, and no clock. 3 epochs of 100 steps, 0.5 s each."""
    log = "".join(f"Epoch {first + n}/3\n100/100 - 50s - 500ms/step - loss: 0.5\n" for n in range(3))
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    own = mapping(
        tmp_path,
        "[[rule]]\nevent = 'alive'\nline = 'Epoch {epoch:int}/'\n"
        + f"epoch = {{ first = {first} }}\n"
        + STEP
        + "line = '{step:int}/{of:int} - {_} - {each:float}ms/step'\n"
        + 'each = { unit = "ms" }\ntime = "cursor"\n',
    )
    analysis = analysed(tmp_path / "train.log", mapping=own)
    assert analysis.job.attempts == 1
    assert sum(seconds(analysis).values()) == 150


def test_steps_per_epoch_may_be_declared(tmp_path: Path) -> None:
    log = "".join(stamped(10 * n, f"epoch {n // 2} batch {50 * (n % 2)}") for n in range(6))
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    rule = "line = 'epoch {epoch:int} batch {step:int}'\nepoch = { first = 0, steps = 100 }\n"
    analysis = analysed(tmp_path / "train.log", mapping=mapping(tmp_path, 'steps = "index"\n' + STEP + rule))
    assert (analysis.job.attempts, analysis.job.kept_steps) == (1, 250)


BAR = "{percent:3d}%|####      | {n}/100 [{clock}<00:30,  2.00it/s]"


def bar(*steps: int) -> str:
    return "\r".join(BAR.format(percent=n, n=n, clock=f"{n // 120:02d}:{n // 2 % 60:02d}") for n in steps)


TQDM = STEP + "line = '| {step:int}/{_:int} [{elapsed:clock}<{_}it/s'\ntime = 'cursor'\n"


def test_overwritten_text_counts_with_split(tmp_path: Path) -> None:
    """A tqdm bar: 100 steps in 50 s, after a timestamp, in one line."""
    log = stamped(0, "go") + bar(*range(0, 101, 10)) + "\n" + stamped(55, "saved")
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    own = mapping(tmp_path, 'split = "\\r"\n' + TQDM)
    analysis = analysed(tmp_path / "train.log", mapping=own)
    assert analysis.job.kept_steps == 100
    assert seconds(analysis)["productive"] == 50
    whole = mapping(tmp_path, TQDM, "whole")
    assert analysed(tmp_path / "train.log", mapping=whole).job.kept_steps < 100  # Only the last state of the bar.


def test_bar_in_a_cloud_logging_entry_is_at_its_last_state(tmp_path: Path) -> None:
    entries = [
        {"textPayload": text, "timestamp": f"2026-03-01T10:00:{at:02d}Z", "insertId": str(at), "logName": "l"}
        for at, text in ((0, "step 1 done"), (10, "step 2 done\rstep 3 done"))
    ]
    (tmp_path / "entries.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in entries), encoding="utf-8")
    for split, steps in (('split = "\\r"\n', 2), ("", 2)):
        own = mapping(tmp_path, split + STEP + "line = 'step {step:int} done'\n")
        assert analysed(tmp_path / "entries.jsonl", mapping=own).job.kept_steps == steps


def test_text_in_a_json_object_is_read_by_a_line_rule(tmp_path: Path) -> None:
    records = [{"asctime": f"2026-03-01 10:00:{5 * n:02d},000", "message": f"step {n} done"} for n in range(1, 6)]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records), encoding="utf-8")
    own = mapping(tmp_path, STEP + "line = 'step {step:int} done'\nkeys = { text = 'message', time = 'asctime' }\n")
    assert seconds(analysed(tmp_path / "log.jsonl", mapping=own)) == {"productive": 20}


def test_record_may_match_two_rules(tmp_path: Path) -> None:
    records = [{"ts": 1_772_359_200 + 10 * n, "step": n, "saved": n % 2 == 0} for n in range(1, 6)]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records), encoding="utf-8")
    keys = "keys = { step = 'step', time = 'ts' }\n"
    both = f"{STEP}also = true\n{keys}[[rule]]\nevent = 'saved'\n{keys}where = {{ saved = true }}\n"
    assert goodput_cli.check([str(tmp_path / "log.jsonl")], mapping=(str(mapping(tmp_path, both)),)).events == 7


def test_mapping_zone_counts_unless_timezone_is_given(tmp_path: Path) -> None:
    """Also for lines that only have a timestamp: a file has one zone."""
    log = "".join(stamped(10 * n, f"step {n} done") for n in range(1, 4)) + stamped(40, "still here")
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    own = mapping(tmp_path, 'zone = "+02:00"\n' + STEP + "line = 'step {step:int} done'\n")
    begin = 1_772_359_200 + 10  # 10:00:10 UTC
    of_mapping = analysed(tmp_path / "train.log", mapping=own)
    assert (of_mapping.job.start_ns, of_mapping.job.end_ns) == tuple((begin - 7200 + at) * 10**9 for at in (0, 30))
    assert "naive_timestamps" not in codes(of_mapping)
    typed = analysed(tmp_path / "train.log", mapping=own, timezone="UTC")
    assert typed.job.start_ns == begin * 10**9


def test_job_name_may_be_in_the_path(tmp_path: Path) -> None:
    log = "".join(stamped(10 * n, f"step {n} done") for n in range(1, 4))
    for run in ("alpha", "beta"):
        (tmp_path / "runs" / run / "logs").mkdir(parents=True)
        (tmp_path / "runs" / run / "logs" / "train.log").write_text(log, encoding="utf-8")
    own = mapping(tmp_path, "job = { path = 'runs/(?P<job>[^/]+)/' }\n" + STEP + "line = 'step {step:int} done'\n")
    sources = [str(tmp_path / "runs" / run / "logs" / "train.log") for run in ("alpha", "beta")]
    assert [row.name for row in goodput_cli.jobs(sources, mapping=(str(own),)).jobs] == ["alpha", "beta"]


def test_folder_of_logs_known_only_to_a_mapping_is_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "logs", a_log="".join(stamped(10 * n, f"step {n} done") for n in range(1, 4)))
    own = mapping(tmp_path, STEP + "line = 'step {step:int} done'\n")
    assert seconds(analysed(folder, mapping=own)) == {"productive": 20}


def test_slow_rule_reads_short_lines(tmp_path: Path) -> None:
    log = "".join(f"2026-03-01 10:00:{10 * n:02d} {n}\n" for n in range(1, 6))
    own = mapping(tmp_path, STEP + "regex = ' (?P<step>\\d+)$'\nslow = true\n")
    analysis = goodput_cli.analyze("-", stdin=io.BytesIO(log.encode()), mapping=(str(own),))
    assert seconds(analysis) == {"productive": 40}


def test_mapping_replaces_a_shipped_one_of_its_name(tmp_path: Path) -> None:
    lines = (f"step: {n}  loss: 1.0  tps: 5" for n in range(1, 4))
    log = "".join(stamped(10 * n, line) for n, line in enumerate(lines))
    (tmp_path / "train.log").write_text(log, encoding="utf-8")
    own = mapping(tmp_path, 'steps = "index"\n' + STEP + "line = 'step: {step:int} loss: {_} tps'\n", "torchtitan")
    assert analysed(tmp_path / "train.log").job.last_step == 3
    assert analysed(tmp_path / "train.log", mapping=own).job.last_step == 4


def test_worker_process_receives_mapping_files(tmp_path: Path) -> None:
    import pickle

    from goodput_cli.events.reading_options import ReadingOptions

    hints = ReadingOptions(mapping=(str(mapping(tmp_path, STEP + "line = 'step {step:int} done'\n")),)).checked()
    os.unlink(tmp_path / "my.toml")
    assert [one.name for one in pickle.loads(pickle.dumps(hints)).mappings.named] == ["my"]
