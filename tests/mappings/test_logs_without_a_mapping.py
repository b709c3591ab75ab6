"""`goodput LOG` of an unknown format: analyzed with rules inferred from it and proven on all of it, or refused with a
tip."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.cli.main import run
from tests.mappings.drafting import at, pytorch

OWN_LOOP = Path("sample_logs/trainers/own-loop.log")


def asked(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Return the exit code, stdout and stderr."""
    capsys.readouterr()
    code = run([*map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def answered(capsys: pytest.CaptureFixture[str], log: Path, *options: str) -> dict[str, Any]:
    code, out, err = asked(capsys, "analyze", log, "--format", "json", *options)
    assert code == 0, err
    answer: dict[str, Any] = json.loads(out)
    return answer


def disk_full(path: str = "ckpt/exp16/mnt") -> str:
    """50 steps of 0.36 s, a save of 1 s after every tenth; the disk is full at the save of step 40, and the program
    continues from step 30 at 38.0 s."""

    def steps(first: int, last: int, second: float) -> tuple[str, float]:
        lines = []
        for step in range(first, last + 1):
            second += 0.36
            lines.append(pytorch(second, f"step {step}/50 loss 1.1 time 0.360s"))
            if step % 10 == 0 and (step, first) != (40, 1) and step != 50:
                second += 1.0
                lines.append(pytorch(second, f"Saved checkpoint {path}/step_{step}.pt (1.00 s)"))
        return "".join(lines), second

    before, _ = steps(1, 40, 0.0)
    behind, end = steps(31, 50, 38.0)
    crash = "Traceback (most recent call last):\nRuntimeError: unexpected pos 10304 vs 10260\n"
    return (
        pytorch(0, "Starting training on cpu, 50 steps, batch size 4")
        + before
        + crash
        + pytorch(36, "Starting training on cpu, 50 steps, batch size 4")
        + pytorch(38, f"Resuming from checkpoint {path}/step_30.pt at step 30")
        + behind
        + pytorch(end, "Training finished after 50 steps")
    )


def test_custom_loop_is_analyzed_without_a_mapping(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(capsys, OWN_LOOP, "-q")
    assert code == 0
    assert "37.04 %" in out
    said = " ".join(out.split())
    keep = f"to check or keep them, run `goodput check --suggest {OWN_LOOP} > my.toml`"
    assert f"read with 6 rules inferred from this log; {keep}" in said


def test_suggested_mapping_gives_the_same_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    own = tmp_path / "own.toml"
    own.write_text(asked(capsys, "check", "--suggest", OWN_LOOP)[1], encoding="utf-8")
    drafted, mapped = answered(capsys, OWN_LOOP), answered(capsys, OWN_LOOP, "--mapping", str(own))
    assert drafted["drafted"]["mapping"] == own.read_text(encoding="utf-8")
    assert (drafted["drafted"]["rules"], mapped.get("drafted")) == (6, None)
    for part in ("job", "window", "goodput", "badput", "disruptions", "saves"):
        assert drafted[part] == mapped[part], part


def test_gates_are_not_judged_by_drafted_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = asked(capsys, OWN_LOOP, "--fail-under", "10")
    assert code == 4
    why = "the rules were drafted; check them in and name them with --mapping"
    assert f"threshold goodput<10: inconclusive ({why})" in " ".join(err.split())
    own = tmp_path / "own.toml"
    own.write_text(asked(capsys, "check", "--suggest", OWN_LOOP)[1], encoding="utf-8")
    assert asked(capsys, OWN_LOOP, "--fail-under", "10", "--mapping", own)[0] == 0
    assert asked(capsys, OWN_LOOP, "--fail-under", "90", "--mapping", own)[0] == 3
    assert asked(capsys, OWN_LOOP, "--strict")[0] == 5


def test_no_draft_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(capsys, OWN_LOOP, "--no-draft")[0] == 4
    shutil.copy(OWN_LOOP, tmp_path)
    (tmp_path / "goodput.toml").write_text("no-draft = true\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert asked(capsys, "own-loop.log")[0] == 4


@pytest.mark.parametrize("path", ["ckpt/exp16/mnt", "run-7/llama-7b", "lr3e-4/seed_12", "2026/03"])
def test_numbers_in_folder_names_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str
) -> None:  # fmt: skip
    """10 steps are lost; kept are 50 of 0.36 s, of 46.2 s."""
    log = tmp_path / "train.log"
    log.write_text(disk_full(path), encoding="utf-8")
    answer = answered(capsys, log)
    assert (answer["job"]["attempts"], answer["job"]["kept_steps"]) == (2, 50)
    assert answer["disruptions"][0]["resumed_step"] == 30
    assert answer["goodput"]["seconds"] == pytest.approx(18.0, abs=0.1)
    assert answer["window"]["seconds"] == pytest.approx(46.2, abs=0.1)


@pytest.mark.parametrize("how", ["doubled", "of eight ranks", "of eight ranks without a name"])
def test_lines_of_other_programs_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:  # fmt: skip
    log = tmp_path / "train.log"
    log.write_text(disk_full(), encoding="utf-8")
    alone = answered(capsys, log)
    lines = disk_full().splitlines(keepends=True)
    count, name = (2, "") if how == "doubled" else (8, "[rank{}]: " if "without" not in how else "")
    log.write_text("".join(name.format(rank) + line for line in lines for rank in range(count)), encoding="utf-8")
    answer = answered(capsys, log)
    assert answer["job"]["attempts"] == alone["job"]["attempts"] == 2
    assert answer["goodput"] == alone["goodput"]


@pytest.mark.parametrize("fraction", ["", ",456", ".456"])
def test_timestamps_known_to_the_second(tmp_path: Path, capsys: pytest.CaptureFixture[str], fraction: str) -> None:
    """Steps of 1.3 s, a save of 5 s after every fiftieth; all timestamps have the same invented fraction."""
    told, second = [pytorch(0, "Starting training")], 0.0
    for step in range(1, 301):
        second += 1.3
        told.append(pytorch(second, f"step {step} loss 1.1"))
        if step % 50 == 0:
            second += 5
            told.append(pytorch(second, "Saved checkpoint (5.00 s)"))
    log = tmp_path / "train.log"
    log.write_text(re.sub(r",\d{3} ", f"{fraction} ", "".join(told)), encoding="utf-8")
    answer = answered(capsys, log)
    assert answer["goodput"]["percent"] == pytest.approx(100 * 300 * 1.3 / second, abs=1)
    assert answer["drafted"]["left_out"] == []


@pytest.mark.parametrize(
    "form",
    ["%d-%m-%Y %H:%M:%S INFO", "%Y-%m-%d_%H:%M:%S", "%Y-%m-%d-%H:%M:%S", "%Y%m%d_%H%M%S", "%Y%m%dT%H%M%SZ",
     "%m%d %H:%M:%S.250 I train.py:7]", "INFO %H:%M:%S", "[INFO] %H:%M:%S", "INFO [%H:%M:%S]"],
)  # fmt: skip
def test_layouts_of_timestamps(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    """20 records of 10 steps, 17 s each, and a save of 40 s."""
    second = 5
    told = [(second, "starting up"), (second := second + 20, "data ready")]
    for step in range(10, 210, 10):
        told.append((second := second + 17, f"step {step} loss {3 / (1 + step / 40):.4f}"))
        if step == 100:
            told.append((second := second + 40, "saved checkpoint step 100"))
    log = tmp_path / "train.log"
    begin = datetime(2026, 3, 17, 22, 10)
    log.write_text("".join(f"{begin + timedelta(seconds=at):{form}} {text}\n" for at, text in told), encoding="utf-8")
    answer = answered(capsys, log)
    assert answer["goodput"]["seconds"] == pytest.approx(340, abs=1)
    assert answer["window"]["seconds"] == pytest.approx(400, abs=1)


def test_bar_drawn_twice_is_not_a_restart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`set_postfix` redraws each state with the new loss: 300 steps of 1 s."""
    states = []
    for step in range(0, 301, 10):
        clock = f"{step // 60:02d}:{step % 60:02d}"
        for loss in (step, step + 1):
            states.append(f"Progress: {step // 3:3d}%|###| {step}/300 [{clock}<05:00, 1.00it/s, Loss=0.{loss:03d}]")
    log = tmp_path / "train.log"
    log.write_text("\r".join(states) + "\n", encoding="utf-8", newline="")
    answer = answered(capsys, log)
    assert (answer["job"]["attempts"], answer["job"]["kept_steps"]) == (1, 300)
    assert answer["goodput"]["percent"] == pytest.approx(100, abs=1)


def test_start_line_with_a_step_is_not_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Records every 5 steps of 0.25 s; dies after step 55, and continues from 40."""

    def absl(second: float, text: str) -> str:
        return f"{at(second, 'I%m%d %H:%M:%S')}.{round(second * 1e6) % 10**6:06d} 140672842128256 jx.py:20] {text}\n"

    def records(first: int, last: int, second: float) -> str:
        return "".join(
            absl(second + (step - first) / 4, f"[{step}] steps/s=4.000, loss=0.2")
            for step in range(first + 5, last + 1, 5)
        )

    log = tmp_path / "train.log"
    log.write_text(
        absl(0, "Starting training loop at step 0.")
        + records(0, 55, 0)
        + absl(30, "Starting training loop at step 40.")
        + records(40, 100, 32)
        + absl(47, "Finished training."),
        encoding="utf-8",
    )
    answer = answered(capsys, log)
    assert (answer["job"]["attempts"], answer["job"]["kept_steps"]) == (2, 100)
    assert answer["disruptions"][0]["resumed_step"] == 40
    assert answer["goodput"]["seconds"] == pytest.approx(25, abs=0.5)


def test_time_of_one_batch_is_not_the_evaluation_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    """25 epochs of 160 s, each followed by an evaluation of 40 s, whose first batch took 4.2 s."""
    log = "".join(
        pytorch(200 * epoch + 5, f"epoch:[ {epoch + 1}/25 ] train step:0 loss: 4.9 batch_cost: 7.40 sec")
        + pytorch(200 * epoch + 100, f"epoch:[ {epoch + 1}/25 ] train step:100 loss: 4.9 batch_cost: 1.90 sec")
        + pytorch(200 * epoch + 160, f"END epoch:{epoch + 1} train loss: 3.9 batch_cost_sum: {160 + epoch % 3}.0 sec")
        + pytorch(200 * epoch + 164, f"epoch:[ {epoch + 1}/25 ] val step:0 loss: 3.2 batch_cost: 4.20 sec")
        + pytorch(200 * epoch + 200, f"END epoch:{epoch + 1} val loss_avg: 3.6 batch_cost_sum: {40 - epoch % 3}.0 sec")
        for epoch in range(25)
    )  # fmt: skip
    path = tmp_path / "train.log"
    path.write_text(pytorch(0, "DATASET : frames") + log, encoding="utf-8")
    answer = answered(capsys, path)
    assert answer["goodput"]["percent"] == pytest.approx(80, abs=2)
    evaluations = next(row for row in answer["badput"] if row["category"] == "custom_badput_events")
    assert evaluations["percent"] == pytest.approx(20, abs=2)


REFUSED = {
    "processes that are spawned": "".join(pytorch(0, f"process {3751 + n} spawned with command") for n in range(8)),
    "names of checkpoints": "".join(
        pytorch(90 * n, f"Checkpoint global_step{50 * n} is about to be saved") for n in range(12)
    ),
    "epochs without a number or an end": "".join(pytorch(n, f"batch {n % 7 + 1} loss 0.1") for n in range(412)),
    "requests": "".join(pytorch(7 * n, f"request {n} took 3 ms") for n in range(60)),
    "no time at all": "".join(f"step {n} loss 0.{n}\n" for n in range(1, 31)),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_log_without_provable_steps_is_refused_with_a_tip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:  # fmt: skip
    log = tmp_path / "train.log"
    log.write_text(REFUSED[name], encoding="utf-8")
    code, _, err = asked(capsys, log)
    assert code == 4
    assert "no step rule could be inferred" in err
    assert '[[rule]] event = "step"' in err
    assert "check --suggest" not in err


CRASH = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
UNNUMBERED = "".join(f"{{'loss': {2 - n / 1000:.2f}, 'epoch': {n // 3 / 100:.2f}}}\n" for n in range(900))
CANCELLED = "slurmstepd: error: *** JOB 1234 ON node1 CANCELLED AT 2026-01-31T{} DUE TO TIME LIMIT ***\n"
MISLED = {
    "0 events in 413 lines (likely cause of its end: train.log:413: device_oom)": (
        REFUSED["epochs without a number or an end"] + CRASH
    ),
    "1 of 901 lines was read, but none of them is a step (cause of its end: train.log:901: time_limit)": (
        UNNUMBERED + CANCELLED.format("13:16:00")
    ),
    "the sources are empty": "",
    "line = 'batch {step:int}": REFUSED["epochs without a number or an end"],
    'lines like "saw 0.5 of it" (train.log:1) may be steps': "saw 0.5 of it\nsaw 0.25 of it\n" * 20,
}  # fmt: skip


@pytest.mark.parametrize("said", MISLED)
def test_refusal_describes_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str], said: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(MISLED[said], encoding="utf-8")
    code, _, err = asked(capsys, log)
    assert code == 4
    assert said in err.replace(f"{tmp_path}/", "")
    assert "check --suggest" not in err


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (
            b"PK\x03\x04\x14\x00\x06\x00" + bytes(range(256)),
            "is a zip (as docx, xlsx, npz and PyTorch's checkpoints are)",
        ),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "is a PDF"),
        (bytes(range(256)) * 8, "is binary"),
    ],
    ids=["docx", "pdf", "bytes"],
)
def test_binary_file_gets_no_tip_to_draft_a_mapping(
    held: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "report.log"
    log.write_bytes(held)
    code, _, err = asked(capsys, "analyze", log)
    assert code == 4
    assert f"nothing was read\ncause: {log} {said}, not a text file" in err
    assert "mapping" not in err


def test_unread_steps_are_reported_with_unjudged_goodput(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    log = tmp_path / "train.log"
    log.write_text(CANCELLED.format("10:00:00") + UNNUMBERED + CANCELLED.format("13:16:00"), encoding="utf-8")
    code, out, err = asked(capsys, log)
    shown = " ".join(out.split())
    assert code == 0
    assert "unknown no step was recognized in 3 h 16 min" in shown
    assert "2 of 902 lines were read, but none of them is a step" in shown
    assert "may be steps" in shown
    assert "check --suggest" not in out + err


def test_unread_log_is_not_reported_as_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    log.write_text(CRASH, encoding="utf-8")
    code, out, err = asked(capsys, "check", log)
    assert code == 4
    assert "No events read" in out
    assert f"`goodput check --suggest {log} > my.toml`" in err


def test_native_log_gets_a_mapping_of_comments_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    log, own = Path("sample_logs/primer-50-percent.jsonl"), tmp_path / "own.toml"
    code, out, _ = asked(capsys, "check", "--suggest", log)
    assert code == 0
    assert out.startswith("# no mapping needed: steps are read as ")
    own.write_text(out, encoding="utf-8")
    assert answered(capsys, log, "--mapping", str(own))["goodput"] == answered(capsys, log)["goodput"]


@pytest.mark.parametrize(
    "written", ["Mon Jan  5 10:00:00 2026   ", "Mon Jan  5 10:00:00 UTC 2026", "Mon Jan 5 10:00:00 2026"]
)
def test_output_of_date_sets_the_day_of_later_times(
    written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    """A launcher prints the date, and the program only times of day; it restarted 20 h later."""

    def attempt(hour: int) -> list[str]:
        told = [f"{hour:02d}:00:01.250 [I] Starting training (train.py:12)"]
        for step in range(120):
            clock = f"{hour + step // 60:02d}:{step % 60:02d}:05.250"
            told += [f"{clock} [I] Progress on: {step}it (bar.py:1)", f"Step {step}: loss=0.5"]
        return told

    second = written.replace("Mon", "Tue").replace("5", "6", 1).replace("10:", "08:")
    log = tmp_path / "train.log"
    log.write_text("\n".join([written, *attempt(10), second, *attempt(8), ""]), encoding="utf-8")
    answer = answered(capsys, log)
    assert answer["window"]["start"].startswith("2026-01-05T10:00:0")
    assert answer["window"]["end"].startswith("2026-01-06T09:59:05")
    assert (answer["job"]["attempts"], answer["job"]["kept_steps"]) == (2, 120)


def test_standard_input_is_read_like_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    named = answered(capsys, OWN_LOOP)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(OWN_LOOP.read_bytes())))
    piped = answered(capsys, Path("-"))
    for part in ("goodput", "badput"):
        assert piped[part] == named[part], part
    assert piped["drafted"]["rules"] == named["drafted"]["rules"] == 6
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(OWN_LOOP.read_bytes())))
    assert asked(capsys, "-", "--no-draft")[0] == 4


def idle(tmp_path: Path, silent: int, between: str = "") -> Path:
    """Return 60 steps of 60 s, nothing for some seconds, and 20 more. between: printed when it continues."""
    log = tmp_path / "train.log"
    told = [pytorch(0, "Starting training")] + [pytorch(60 * n, f"step {n}/80 loss 1.1") for n in range(1, 61)]
    more = [pytorch(silent + 3590, between)] if between else []
    more += [pytorch(silent + 60 * n, f"step {n}/80 loss 1.1") for n in range(61, 81)]
    log.write_text("".join(told + more), encoding="utf-8")
    return log


def test_long_silence_does_not_refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """80 steps of 60 s in 5 h: the silence is unexplained time, or a hang."""
    answer = answered(capsys, idle(tmp_path, 4 * 3600))
    assert (answer["job"]["attempts"], answer["job"]["kept_steps"]) == (1, 80)
    assert answer["goodput"]["seconds"] == pytest.approx(80 * 60, abs=120)


def test_weekend_between_attempts_is_not_one_span(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answered(capsys, idle(tmp_path, 54 * 3600, "Starting training"))["job"]["attempts"] == 2


def test_llama_factory_repeated_step_is_an_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    rows = [
        {"current_steps": 5 * n, "total_steps": 250, "elapsed_time": f"0:{12 * n // 60:02}:{12 * n % 60:02}",
         "remaining_time": "0:01:00", **more}
        for n in range(1, 51) for more in ({}, *([{}, {"eval_loss": 1.2}] if n % 10 == 0 else []))
    ]  # fmt: skip
    log = tmp_path / "trainer_log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    answer = answered(capsys, log)
    assert answer["job"]["formats"] == ["llama-factory"]
    assert (answer["job"]["attempts"], answer["job"]["kept_steps"]) == (1, 250)
    assert answer["window"]["seconds"] == 600
    assert "drafted" not in answer


@pytest.mark.parametrize("form", ["table", "json", "csv", "html", "markdown", "junit", "openmetrics"])
def test_all_output_formats_show_that_rules_were_drafted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:  # fmt: skip
    """The file name would break out of a comment or a row, or be a formula."""
    log = tmp_path / "=1+1\n# EOF\nx 1\x1b[31m.log"
    log.write_text(Path("sample_logs/trainers/own-loop.log").read_text())
    code, out, _ = asked(capsys, "analyze", "-q", "--format", form, log)
    assert code == 0
    assert '"rules": 6' in out if form == "json" else "6 rules inferred from this log" in " ".join(out.split())
    assert "\x1b" not in out
    if form == "csv":
        assert [row[0] for row in csv.reader(out.splitlines())].count("drafted") == 1
        assert all(len(row) == 5 for row in csv.reader(out.splitlines()))
    if form == "openmetrics":
        assert out.count("\n# EOF") == 1
        assert 'goodput_drafted_rules{job_name="' in out
        assert not any(line.startswith("x 1") for line in out.splitlines())


@pytest.mark.parametrize("command", [("watch",), ("monitor", "--publish", "json:{}/out.json")])
def test_running_log_with_unprovable_steps_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:  # fmt: skip
    log = tmp_path / "train.log"
    log.write_text(REFUSED["no time at all"], encoding="utf-8")
    code, _, err = asked(capsys, *(part.format(tmp_path) for part in command), log)
    assert code == 4
    assert f"`goodput check --suggest {log} > my.toml`" in err
    assert "`--mapping my.toml`" in err


def test_sides_are_compared_by_rules_of_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    one, other = tmp_path / "one.log", tmp_path / "other.log"
    text = Path("sample_logs/trainers/own-loop.log").read_text()
    one.write_text(text)
    other.write_text(text.replace("loss=2.9", "loss=2.8"))
    for form in ("table", "json", "csv", "html", "markdown", "junit", "openmetrics"):
        code, out, _ = asked(capsys, "compare", one, other, "-q", "--format", form)
        assert code == 0
        assert '"rules":6' in out if form == "json" else "6 rules inferred from this log" in " ".join(out.split())
    code, _, err = asked(capsys, "compare", one, other, "--fail-if", "goodput:-50pp")
    assert code == 4
    assert "inconclusive (the rules were drafted" in " ".join(err.split())
    code, _, err = asked(capsys, "compare", one, other, "--no-draft")
    assert code == 4
    assert "6 rules" not in err


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [("| Step", "| it", "they match no step"),
     ("at step 50", "at step 10", "none of its numbers leads to the next step (")],
)  # fmt: skip
def test_side_that_contradicts_the_first_rules_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], right: str, wrong: str, said: str
) -> None:
    one, other = tmp_path / "one.log", tmp_path / "other.log"
    text = Path("sample_logs/trainers/own-loop.log").read_text()
    one.write_text(text)
    other.write_text(text.replace(right, wrong))
    code, _, err = asked(capsys, "compare", one, other)
    assert code == 4
    assert f"the rules inferred from {one} do not fit this log\n" in err
    assert said in err


def test_kernel_log_next_to_it_adds_a_cause_but_no_rules(tmp_path: Path) -> None:
    """Words of the kernel log do not start a program, even between two attempts."""
    stamp, killed = "%Y-%m-%d %H:%M:%S", at(646, "%Y-%m-%dT%H:%M:%S+00:00")
    lines = []
    for begin, first in ((0, 10), (1800, 160)):
        lines += [f"{at(begin, stamp)} INFO start of training, 8 ranks"]
        lines += [f"{at(begin + 80 + 40 * n, stamp)} INFO step {first + 10 * n}/1000 loss 4.2" for n in range(15)]
    kernel = [
        f"{killed} node-03 kernel: memory: usage 524288000kB, limit 524288000kB, failcnt 9\n",
        f"{killed} node-03 kernel: Memory cgroup out of memory: Killed process 4 (python) total-vm:9kB\n",
    ]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    alone = goodput_cli.analyze(str(tmp_path), job_name="job", timezone="UTC")
    (tmp_path / "node-03.kern.log").write_text("".join(kernel))
    both = goodput_cli.analyze(str(tmp_path), job_name="job", timezone="UTC", hosts_of_job=("node-03",))
    assert both.goodput.percent == alone.goodput.percent
    assert [one.cause for one in both.disruptions] == ["host_oom"]


def test_text_in_another_encoding_is_no_binary_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of box-drawing characters in GBK precedes the steps."""
    log = tmp_path / "train.log"
    table = ("│ name │ value │\n├───────┼────────┤\n" * 150).encode("gbk")
    log.write_bytes(table + "".join(pytorch(9 + 3 * k, f"step {k + 1}/40 loss 1.1") for k in range(40)).encode())
    assert answered(capsys, log)["steps"]["count"] == 39
