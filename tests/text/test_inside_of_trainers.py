"""Phases inside steps, in the formats of trainers' source code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.events.read import read_events

HEADING = "=" * 25


def analyze(folder: Path, text: str, name: str = "train.log") -> Analysis:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return goodput_cli.analyze(str(path))


def seconds(analysis: Analysis) -> dict[str, float]:
    """Return the seconds of whole phases."""
    (one,) = analysis.step_phases
    return {row.phase: row.slowest_ns / 1e9 for row in one.phases if row.logged is None}


def metrics(folder: Path, text: str) -> dict[str, list[float]]:
    path = folder / "train.log"
    path.write_text(text, encoding="utf-8")
    return {one.name: one.value.tolist() for one in read_events([str(path)]).table.metrics}


def nemo_rl(steps: range, exposed: float = 32.5, saves: tuple[int, ...] = (), evaluated: tuple[int, ...] = ()) -> str:
    """Return steps of 60 s, a save of 5 s, an evaluation of 20 s."""
    lines = ["▶ Setting up compute cluster..."]
    for step in steps:
        lines += ["", f"{HEADING} Step {step}/{steps.stop - 1} {HEADING}", "▶ Training policy..."]
        total = 60.0
        if step in evaluated:
            lines += ["▶ Starting validation at step 3...", "  ⏱️  Validation Timing:"]
            lines += ["    • Total validation time: 20.00s"]
            total += 20
        if step in saves:
            lines += [f"Saving checkpoint for step {step}..."]
            total += 5
        parts = {"exposed_generation": exposed, "policy_training": 20.0, "weight_sync": 1.25}
        parts |= {"checkpointing": 5.0} if step in saves else {}
        parts |= {"idle/buffer_starvation": 30.0, "a_new_timer": 0.5}
        lines += ["📊 Training Results:", "  • Loss: 0.0123", "", "⏱️  Timing:", f"  • Total step time: {total:.2f}s"]
        lines += [f"  • {name}: {took:.2f}s ({100 * took / total:.1f}%)" for name, took in parts.items()]
    return "\n".join([*lines, "Max number of steps has been reached, stopping training early", ""])


def test_nemo_rl_waits_for_its_generators(tmp_path: Path) -> None:
    analysis = analyze(tmp_path, nemo_rl(range(11, 17), saves=(13, 16), evaluated=(14,)))
    found = seconds(analysis)
    assert {"wait": 195, "train": 120, "sync": 7.5, "save": 10, "evaluation": 20}.items() <= found.items()
    assert found["other"] == pytest.approx(6 * 60 - 195 - 120 - 7.5)
    (one,) = analysis.step_phases
    assert one.net_step_ns == 360_000_000_000
    ledger = {row.category: row.ns for row in analysis.badput}
    assert ledger == {"custom_badput_events": 20_000_000_000, "unproductive_checkpoint_save_time": 10_000_000_000}
    assert analysis.job.kept_range == (11, 16)


def test_nemo_rl_steps_continue_through_epochs(tmp_path: Path) -> None:
    once = nemo_rl(range(1, 4)).splitlines()
    two = [f"{HEADING} Epoch 1/2 {HEADING}", *once[:-1], f"{HEADING} Epoch 2/2 {HEADING}", *once[1:]]
    analysis = analyze(tmp_path, "\n".join(two) + "\n")
    assert (analysis.job.kept_range, analysis.job.attempts) == ((1, 6), 1)


def openrlhf(mark: str, step: int, total: float) -> str:
    status = {"policy_loss": 0.1, "timing/make_experience": 12.5, "timing/ppo_train": 40.25, "timing/broadcast": 1.5}
    status |= {"kl": 1e-05, "timing/generation": 30.0, "timing/step_total": total}
    return f"INFO 03-01 10:{step:02}:00 ppo_trainer.py:547] {mark}Global step {step}: {status}"


def test_openrlhf_synchronous_generation_is_inside_steps(tmp_path: Path) -> None:
    analysis = analyze(tmp_path, "\n".join(openrlhf("✨ ", step, 84.25) for step in range(1, 9)) + "\n")
    (one,) = analysis.step_phases
    assert one.net_step_ns is None  # The sum of the others is not wall time.
    assert seconds(analysis) == {"train": 8 * 52.75, "generate": 240, "sync": 12}


def test_openrlhf_asynchronous_generation_has_wall_times(tmp_path: Path) -> None:
    analysis = analyze(tmp_path, "\n".join(openrlhf("", step, 60.0) for step in range(1, 9)) + "\n")
    (one,) = analysis.step_phases
    assert one.net_step_ns == 480_000_000_000
    assert seconds(analysis) == {"train": 8 * 52.75, "sync": 12, "other": pytest.approx(8 * 5.75)}


def timm(stamped: bool) -> str:
    lines, now = [], 0.0

    def put(text: str) -> None:
        stamp = f"2026-03-01 10:{int(now) // 60:02}:{int(now) % 60:02},000 - {'train':>20}: [{'INFO':>8}] - "
        lines.append(f"{stamp if stamped else ''}{text}")

    put("Training in distributed mode with multiple processes, 1 device per process.Process 0, total 8, device cuda:0.")
    for epoch in range(2):
        for update in range(200):
            now += 1
            if update % 50 == 0 or update == 199:
                put(
                    f"Train: {epoch} [{update:>4d}/200 ({100.0 * (update + 1) / 200:>3.0f}%)]  Loss: 6.91 (6.93)  "
                    f"Time: {1:.3f}s, {2048:>7.2f}/s  ({1:.3f}s, {2048:>7.2f}/s)  LR: {4e-4:.3e}  Data: 0.250 (0.3)"
                )
        put(f"Test: [{0:>4d}/48]  Time: 0.2 (0.2)  Loss:   1.0 ( 1.0)  Acc@1:   1.0 ( 1.0)  Acc@5:   1.0 ( 1.0)")
        now += 20
        put("Current checkpoints:")
        lines.append(" ('./output/checkpoint-0.pth.tar', 70.1)")
    put("*** Best metric: 71.2 (epoch 1)")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("stamped", [True, False])
def test_timm_waits_for_data(tmp_path: Path, stamped: bool) -> None:
    analysis = analyze(tmp_path, timm(stamped))
    found = seconds(analysis)
    assert found["data"] == pytest.approx(100, rel=0.01)
    assert found["other"] == pytest.approx(300, rel=0.01)
    assert (analysis.job.kept_range, analysis.job.formats) == ((1, 400), ("timm",))
    assert metrics(tmp_path, timm(stamped))["samples_per_second"] == [2048.0] * 10


DETECTRON2 = (
    "[11/07 14:{minute:02}:00 d2.utils.events]:  eta: 19:25:50  iter: {step}  total_loss: 321.3  time: 3.0000  "
    "last_time: 2.9  data_time: 0.7500  last_data_time: 0.7  lr: 1e-05  max_mem: 2440M\n"
)


def test_detectron2_data_phase_does_not_change_step_times(tmp_path: Path) -> None:
    text = "".join(DETECTRON2.format(minute=at, step=20 * at - 1) for at in range(1, 11))
    analysis = analyze(tmp_path, text, "log.txt")
    assert seconds(analysis)["data"] == pytest.approx(150)
    without = analyze(tmp_path, text.replace("data_time", "other_time").replace("time: 3.0000", "cost: 3"), "log.txt")
    assert not without.step_phases
    assert without.segments.to_csv() == analysis.segments.to_csv()


def test_trainer_running_counts_are_totals(tmp_path: Path) -> None:
    text = """2026-03-01 10:00:00,000 - INFO - ***** Running training *****
{'loss': 2.5, 'learning_rate': 5e-05, 'epoch': 0.1, 'num_input_tokens_seen': 100000}
 10%|█         | 10/100 [00:10<01:30,  1.00s/it]
{'loss': '2.4', 'epoch': '0.2', 'num_input_tokens_seen': '200000'}
 20%|██        | 20/100 [00:20<01:20,  1.00s/it]
{'train_runtime': 20.5, 'train_samples_per_second': 106.9, 'total_flos': 1.06e+16, 'train_loss': 2.1, 'epoch': 0.2}
"""
    assert metrics(tmp_path, text) == {
        "tokens_total": [100000, 200000], "flops_total": [1.06e16], "total_steps": [100, 100],
    }  # fmt: skip


def mllog(key: str, ms: int, value: object = None, **metadata: object) -> str:
    entry = {"namespace": "", "time_ms": 1_700_000_000_000 + ms, "event_type": "POINT_IN_TIME", "key": key}
    return f":::MLLOG {json.dumps({**entry, 'value': value, 'metadata': metadata})}"


def test_mlperf_contains_the_size_of_a_step(tmp_path: Path) -> None:
    lines = [mllog("global_batch_size", 0, 256), mllog("max_sequence_length", 0, 8192), mllog("run_start", 1000)]
    lines += [mllog("block_start", 2000, step=0)]
    for step in (10, 20, 30):
        lines.append(mllog("tracked_stats", 2000 + 100 * step, {"throughput": 25.5, "loss": 1.0}, step_num=step))
        lines.append(mllog("block_stop", 2001 + 100 * step, step_num=step))
    lines.append(mllog("run_stop", 6000, status="success"))
    found = metrics(tmp_path, "\n".join(lines) + "\n")
    assert found["samples_per_step"] == [256]
    assert found["sequence_length"] == [8192]
    assert set(found["samples_per_second"]) == {25.5}


MAPPING = r"""
name = "loop"
[[rule]]
event = "step"
regex = 'step (?P<step>\d+) took (?P<each>\S+?)s(?: data (?P<data>\S+?)ms)?(?: rank (?P<rank>\S+))?(?: t/\w+:\S+)*$'
phases = { data = { unit = "ms" } }
phase_pattern = 't/(?P<phase>\w+):(?P<value>\S+)'
names = { fwd = "forward_backward", opt = "optimizer" }
"""


def mapped(folder: Path, lines: list[str]) -> Analysis:
    mapping, log = folder / "loop.toml", folder / "run.log"
    mapping.write_text(MAPPING, encoding="utf-8")
    stamped = (f"2026-03-01 10:{at // 60:02}:{at % 60:02} {line}\n" for at, line in enumerate(lines))
    log.write_text("".join(stamped), encoding="utf-8")
    return goodput_cli.analyze(str(log), mapping=(str(mapping),))


BAD = [
    ("step 9 took 1s data -5ms", "`data` is not a duration: -5; ignored"),
    ("step 9 took 1s data infms", "`data` is not a duration: inf; ignored"),
    ("step 9 took 1s data nanms", "`data` is not a duration: nan; ignored"),
    ("step 9 took 1s data fastms", "`data` is not a duration: fast; ignored"),
    ("step 9 took 1s data 3500ms", "`data` is longer than its steps; ignored"),
    ("step 9 took 1s t/fwd:1e99", "`fwd` is not a duration: 1e99; ignored"),
    ("step 9 took 1s data 5ms rank 99999999", "99999999 is not a rank; its phases are ignored"),
]


@pytest.mark.parametrize(("line", "message"), BAD)
def test_invalid_phase_is_reported_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    good = [f"step {step} took 1s data 200ms t/fwd:0.5 t/opt:0.25 t/new:0.01" for step in range(1, 9)]
    analysis = mapped(tmp_path, [*good, line])
    (one,) = (one for one in analysis.diagnostics if one.code == "bad_phase")
    assert (one.message, one.count) == (message, 1)
    assert one.where == (f"{tmp_path / 'run.log'}:9",)
    assert seconds(analysis)["data"] == pytest.approx(1.6)
    assert analysis.job.kept_range == (2, 9)


def test_overlapping_phases_are_reported(tmp_path: Path) -> None:
    analysis = mapped(tmp_path, [f"step {step} took 1s data 500ms t/fwd:0.75" for step in range(1, 9)])
    (one,) = (one for one in analysis.diagnostics if one.code == "phases_overlap")
    assert one.message == "step phases take 2.00 s longer than their steps"
    assert "other" not in seconds(analysis)


WORDS = st.one_of(
    st.floats().map(str), st.integers().map(str), st.text(max_size=8).filter(lambda text: not text.split()[1:])
)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS), min_size=1, max_size=6))
def test_mutated_lines_never_raise_or_give_negative_phases(
    tmp_path_factory: pytest.TempPathFactory, words: list[tuple[str, str, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    lines = [f"step {at} took {a}s data {b}ms rank {c} t/fwd:{d}" for at, (a, b, c, d) in enumerate(words, 3)]
    lines = [line.replace("\n", " ").replace("\r", " ") for line in lines]
    analysis = mapped(folder, ["step 1 took 1s", "step 2 took 1s data 5ms", *lines])
    for one in analysis.step_phases:
        assert all(row.slowest_ns >= 0 and (row.percent or 0) >= 0 for row in one.phases)


@given(st.integers(0, 3000), st.text(max_size=6), st.integers(0, 3000))
def test_truncated_blocks_are_read_up_to_their_end(
    tmp_path_factory: pytest.TempPathFactory, at: int, what: str, until: int
) -> None:
    folder = tmp_path_factory.mktemp("blocks")
    text = nemo_rl(range(1, 6), saves=(2,), evaluated=(3,))
    path = folder / "train.log"
    path.write_text(text[:at] + what + text[at + until :], encoding="utf-8", errors="replace")
    table = read_events([str(path)]).table
    assert all(int(one.ns.min(initial=0)) >= -1 for one in table.inside)
