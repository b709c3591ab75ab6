"""Work of kept steps, and the estimated end of the job: computed by hand (docs/inside-steps.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import goodput_cli
from goodput_cli import Analysis
from goodput_cli.analysis.compare.saved_analysis import summary_of_saved
from goodput_cli.analysis.goodput.thresholds import parse_threshold
from goodput_cli.analysis.kept_work.sheet import work_line, work_lines
from goodput_cli.analysis.kept_work.work import KeptWork
from goodput_cli.analysis.measures import MEASURES
from goodput_cli.analysis.summary import summary_of
from goodput_cli.cli.main import run
from goodput_cli.errors import UsageError
from goodput_cli.report.base import Page, load_renderer
from tests.support.story import megatron, recorded, timestamp, titan_step, torchtitan

Read = Callable[..., Analysis]
VERL = (
    "(TaskRunner pid=1) step:{step} - actor/pg_loss:0.012 - timing_s/gen:30.0 - timing_s/step:{took} - "
    "perf/total_num_tokens:{tokens} - perf/throughput:{rate}"
)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def analysed(text: str | Iterable[str], **options: Any) -> Analysis:
        path = tmp_path / options.pop("name", "train.log")
        path.write_text(text if isinstance(text, str) else "".join(f"{line}\n" for line in text), encoding="utf-8")
        return goodput_cli.analyze(path, timezone="UTC", **options)

    return analysed


def work(analysis: Analysis) -> KeptWork:
    assert analysis.work is not None
    return analysis.work


def test_an_hour_of_eight_accelerators_and_its_money(read: Read) -> None:
    """1 h, 8 H100, 3000 kept steps of 1.0 s, 400 TFLOP/s, 256 x 4096 tokens, $2.50: the plan's example."""
    lines = megatron(3000, start_up=600.0)
    analysis = read(lines, accelerators=8, price_per_hour=2.5, accelerator_type="h100")
    found = work(analysis)
    assert analysis.goodput_percent == pytest.approx(100 * 3000 / 3600)
    assert (found.tokens, found.samples, found.steps) == (3_145_728_000, 768_000, 3000)
    assert found.tokens_per_second == pytest.approx(3_145_728_000 / 3600)  # 873,813
    assert found.tflop == pytest.approx(3000 * 8 * 400)
    assert found.mfu_percent == pytest.approx(100 * 400 / 989)  # 40.44
    assert found.effective_mfu_percent == pytest.approx(40.44489 * 3000 / 3600, rel=1e-6)  # 33.70
    assert found.cost_per_million_tokens == pytest.approx(20 / 3145.728)  # 0.00636
    assert (found.tokens_from, found.tflop_from) == ("samples x sequence length", "rate x time")
    assert (found.accelerators, found.accelerators_from, found.notes) == (8, "--accelerators", ())
    assert next(iter(work_lines(analysis))) == (
        "work: 3,145,728,000 tokens kept (samples x sequence length), 873,813 per second, effective MFU "
        "33.70 % (40.44 % in kept steps), cost per million tokens 0.00636"
    )


def test_missing_facts_are_not_recorded(read: Read) -> None:
    found = work(read(megatron(100, tflops=None, world=None)))
    assert found.tokens == 100 * 256 * 4096
    assert found.tflop is found.mfu_percent is found.effective_mfu_percent is None
    assert found.accelerators is found.peak_tflops is found.cost_per_million_tokens is None
    assert work(read(megatron(100))).mfu_percent is None, "nobody says what an accelerator can do"
    assert read(recorded(30, lambda _: 1.0)).work is None


@pytest.mark.parametrize(
    "sizes",
    [
        ("Training starts at step 1, with local batch size 1, global batch size 64, sequence length 8192, total steps "
         "5000 (warmup 200)",),
        ("Trainer is initialized with local batch size 1, global batch size 64, gradient accumulation steps 1, "
         "sequence length 8192, total steps 5000 (warmup 200)", "Training starts at step 1"),
    ],
)  # fmt: skip
def test_torchtitan_logs_batch_length_and_steps(read: Read, sizes: tuple[str, ...]) -> None:
    steps = [(4.0 + 10 * at, titan_step(10 * at, 8192)) for at in range(1, 11)]
    analysis = read(torchtitan((0, "Starting job: x"), *((4, one) for one in sizes), *steps))
    found = work(analysis)
    assert (found.tokens, found.tokens_from) == (100 * 64 * 8192, "samples x sequence length")
    assert analysis.eta is not None
    assert (analysis.eta.total_steps, analysis.eta.total_from) == (5000, "logged")
    assert analysis.job.attempts == 1


def test_torchtitan_rates_use_wall_time_since_the_last_line(read: Read) -> None:
    """4 devices, 32768 tokens per step of 1 s; a save of 5 s within steps 21 to 30, an evaluation of 6 s after 30."""
    text = torchtitan(
        (0, "Starting job: example"),
        (4, "Peak FLOPS used for computing MFU: 9.890e+14"),
        (4, "Trainer is initialized with 8192 tokens per DP rank, 32768 tokens per train step, gradient accumulation "
            "steps 1, maximum context length 8192, total steps 100 (warmup 2)"),
        (4, "Training starts at step 1"),
        (14, titan_step(1, 819.2, 39.322)),
        (23, titan_step(10, 8192)),
        (33, titan_step(20, 8192)),
        (48, titan_step(30, 5461.333, 262.147)),
        (54, "validate step: 30  loss:  7.9120  memory: 39.00GiB(41.04%)  tps: 9,100"),
        (64, titan_step(40, 8192)),
    )  # fmt: skip
    found = work(read(text))
    assert (found.tokens, found.tokens_from) == (40 * 32768, "logged")
    assert (found.accelerators, found.accelerators_from) == (4, "tokens / (time x rate)")
    assert found.tflop == pytest.approx(40 * 4 * 393.22, rel=1e-3), "every step is as much work, whatever it took"
    assert found.peak_tflops == 989
    assert found.effective_mfu_percent == pytest.approx(100 * 40 * 393.22 / (64 * 989), rel=1e-3)


def test_torchtitan_tokens_need_accelerators_without_size(read: Read) -> None:
    lines = torchtitan((0, "Starting job: x"), *((10 + 10 * k, titan_step(10 * k + 10, 8192, "N/A", "N/A"))
                       for k in range(6)))  # fmt: skip
    assert read(lines).work is None
    found = work(read(lines, accelerators=4))
    assert (found.tokens, found.tokens_from) == (60 * 32768, "rate x time")


def test_verl_tokens_are_counted_and_give_accelerators(read: Read) -> None:
    lines = [VERL.format(step=step, took=60.0, tokens=1_200_000, rate=2500.0) for step in range(1, 5)]
    found = work(read(["(TaskRunner pid=1) Total training steps: 10", *lines]))
    assert (found.tokens, found.accelerators) == (4_800_000, 8)
    assert found.tokens_per_second == pytest.approx(20_000)


def test_first_step_counts_tokens_without_time(read: Read) -> None:
    """50 steps of 1.25 s, a line each ten: that of step 10 is the first."""
    lines = [
        f"[{timestamp(12.5 * k, '%Y-%m-%d %H:%M:%S')},{'500' if k % 2 else '000'}] [    INFO] - global step {10 * k}, "
        f"epoch: 0, batch: {10 * k - 1}, loss: 9.5, avg_reader_cost: 0.30000 sec, avg_batch_cost: 1.25000 sec, speed: "
        "0.80 step/s, ips_total: 13107 tokens/s, ips: 1638 tokens/s, learning rate: 1.00000e-04"
        for k in range(1, 6)
    ]
    found = work(read(lines))
    assert found.tokens == pytest.approx(13107 * 1.25 * 50)  # 819,187.5
    assert found.tokens_per_second == pytest.approx(13107)
    assert found.steps == 50


def test_rates_of_maxtext_are_of_its_seconds(read: Read) -> None:
    """Steps of 10 s by its own count; between two of them the job waited for a minute."""
    lines = [
        f"I0301 {timestamp(10 * k + (60 if k > 20 else 0), '%H:%M:%S.%f')} 1 metric_logger.py:226] completed step: "
        f"{k}, seconds: 10.000, TFLOP/s/device: 31.2, Tokens/s/device: 800.0, total_weights: 65536, loss: 9.1"
        for k in range(30)
    ]
    found = work(read(lines, accelerators=16, peak_tflops=312))
    assert found.tokens == pytest.approx(30 * 10 * 800 * 16)
    assert found.mfu_percent == pytest.approx(10.0)
    assert found.effective_mfu_percent == pytest.approx(10.0 * 290 / 350)


def test_mfu_of_nanogpt_is_of_an_a100(read: Read) -> None:
    lines = ["tokens per iteration will be: 491,520"]
    lines += [f"iter {10 * k}: loss 4.1021, time 250.00ms, mfu 17.20%" for k in range(30)]
    found = work(read(lines))
    assert found.tokens == 291 * 491_520
    assert found.mfu_percent == pytest.approx(17.2)
    assert work(read(lines, accelerator_type="h100")).mfu_percent == pytest.approx(17.2 * 312 / 989)


def test_wasted_steps_are_left_out(read: Read) -> None:
    """200 steps, where the second hundred is trained again from a checkpoint, at a smaller batch."""
    again = [f"  successfully loaded checkpoint from /c [ t 1/1, p 1/1 ] at iteration {100}"]
    lines = [*megatron(200), *again, *megatron(150, first=100, at=300.0, batch=128)]
    analysis = read(lines)
    assert analysis.job.attempts == 2
    assert work(analysis).samples == 100 * 256 + 150 * 128


def test_accelerators_count_over_time(read: Read) -> None:
    """1000 s on 8, then 1000 s on 4: six on average."""
    lines = [*megatron(1000), *megatron(1000, first=1000, at=1000.0, world=4)]
    found = work(read(lines, accelerator_type="h100"))
    assert found.accelerators == pytest.approx(6.0, rel=1e-3)
    assert found.tflop == pytest.approx(1000 * 400 * 12)
    assert found.effective_mfu_percent == pytest.approx(100 * 400 / 989, rel=1e-3)


def test_running_counts_and_amounts_of_the_recorder(read: Read) -> None:
    def seen(step: int) -> int:
        return 1000 + 500 * step

    found = work(
        read(recorded(100, lambda _: 2.0, tokens_total=seen, flops_per_step=lambda _: 8e12, num_gpus=lambda _: 4))
    )
    assert found.tokens == pytest.approx(99 * 500, rel=0.02)
    assert found.tokens_from == "differences of a running count"
    assert found.tflop == pytest.approx(99 * 8, rel=0.02)
    by_peak = work(
        read(recorded(100, lambda _: 2.0, flops_per_step=lambda _: 8e12, num_gpus=lambda _: 4), peak_tflops=2)
    )
    assert by_peak.mfu_percent == pytest.approx(100 * 8 / (2 * 4 * 2), rel=0.03)


def test_option_overrides_the_log_and_is_reported(read: Read) -> None:
    analysis = read(megatron(100), accelerators=16, tokens_per_step=1000)
    found = work(analysis)
    assert (found.tokens, found.tokens_from) == (100_000, "--tokens-per-step")
    assert found.notes == (
        "--accelerators is used (16); the log contains 8",
        "--tokens-per-step is used (1000 a step); the log contains 1048576",
    )
    assert {*found.notes} <= {*work_lines(analysis)}


def test_a_window_has_its_own_work(read: Read, tmp_path: Path) -> None:
    lines = megatron(1000)
    half = work(read(lines, start="+250s", end="+750s"))
    assert half.tokens == pytest.approx(500 * 256 * 4096)
    assert half.tokens_per_second == pytest.approx(256 * 4096)
    without = work(
        read(lines, exclude=[f"{timestamp(500, '%Y-%m-%dT%H:%M:%S')}/{timestamp(750, '%Y-%m-%dT%H:%M:%S')}"])
    )
    assert without.tokens_per_second == pytest.approx(256 * 4096)


@pytest.mark.parametrize(
    ("steps", "seconds", "options", "says"),
    [
        (300, 2.4, {}, "ETA: 30 min 00 s at this goodput (14:10 UTC), at least 24 min 00 s"),
        (300, 2.4, {"total_steps": 300}, ""),  # all are done
        (20, 2.4, {"total_steps": 900}, ""),  # the pace is unknown
    ],
)
def test_when_it_will_be_done(read: Read, steps: int, seconds: float, options: dict[str, Any], says: str) -> None:
    """600 steps left of 2.4 s, of a window that trained for 80 %: 1800 s, 1440 at the least."""
    analysis = read(megatron(steps, seconds, start_up=steps * seconds / 4, total=900), **options)
    said = [one for one in work_lines(analysis) if one.startswith("ETA: ")]
    assert [one.partition("; ")[0] for one in said] == ([says] if says else [])
    if says:
        assert analysis.eta is not None
        assert (analysis.eta.steps_left, analysis.eta.total_from) == (600, "logged")
        assert analysis.eta.seconds == pytest.approx(1800)
        assert analysis.eta.least_seconds == pytest.approx(1440)


def test_possibly_failed_job_has_no_estimated_end(read: Read) -> None:
    silent = read(megatron(300, 2.4, start_up=180.0, total=900), as_of="2026-03-01T18:00:00Z")
    assert "dead_job" in {one.code for one in silent.insights}
    assert silent.eta is None


def test_the_last_level_counts_for_what_is_left(read: Read) -> None:
    lines = [*recorded(400, lambda step: 1.0 if step < 200 else 2.0)]
    eta = read(lines, total_steps=600).eta
    assert eta is not None
    assert eta.step_seconds == pytest.approx(2.0)
    assert eta.steps_left == pytest.approx(200, abs=2)


def test_ended_job_has_no_estimated_end(read: Read) -> None:
    lines = [*megatron(300), f"[after training is done] datetime: {timestamp(301, '%Y-%m-%d %H:%M:%S')} "]
    assert read(lines, total_steps=900).eta is None
    saved = [json.dumps({"job_name": "j", "goodput_event": "metrics", "goodput_time": 1, "total_steps": 10})]
    assert read([*recorded(3, lambda _: 1.0), *saved]).eta is None


def test_first_line_for_terminals(read: Read) -> None:
    analysis = read(megatron(300, 2.4, start_up=180.0, total=900), accelerator_type="h100")
    line = work_line(analysis, 78)
    assert line == "effective MFU 32.36 %, ETA 30 min 00 s (14:10 UTC), 349,525 tokens/s"
    assert work_line(analysis, 40) == "effective MFU 32.36 %, 349,525 tokens/s"
    assert work_line(analysis, 5) is None


def test_json_metrics_page_and_saved_answer_agree(read: Read) -> None:
    analysis = read(megatron(300, 2.4, start_up=180.0, total=900), accelerator_type="h100")
    answer = analysis.to_dict()
    inside = answer["inside"]
    assert (inside["phases"], inside["steps"], inside["net_step_seconds"]) == ([], 0, None)
    assert inside["work"]["tokens"] == 300 * 256 * 4096
    assert inside["eta"]["done"] == "2026-03-01T14:10:00Z"
    back = summary_of_saved(json.loads(json.dumps(answer)), "saved").work
    assert back == analysis.work
    text = load_renderer("openmetrics")(analysis, Page())
    assert 'goodput_kept_tokens{job_name="train"} 314572800' in text
    assert f'goodput_eta_timestamp_seconds{{job_name="train"}} {analysis.eta.done_ns // 10**9}' in text  # type: ignore[union-attr]
    assert "goodput_effective_mfu_ratio" in text
    page = analysis.to_html()
    assert "effective MFU" in page
    assert "314,572,800 (349,525 per second)" in page


def test_an_answer_without_work_has_no_key_of_it(read: Read) -> None:
    assert "inside" not in read(recorded(30, lambda _: 1.0)).to_dict()


@pytest.mark.parametrize(
    ("expression", "met"),
    [
        ("effective_mfu<33", True),
        ("effective_mfu<32", False),
        ("tokens_per_second<349000", False),
        ("kept_tokens>3e8", None),
        ("cost_per_million_tokens>0.001", None),
        ("phase:data>20", None),
    ],
)
def test_thresholds(read: Read, expression: str, met: bool | None) -> None:
    lines = megatron(300, 2.4, start_up=180.0, total=900)
    if "e8" in expression:
        with pytest.raises(UsageError):
            parse_threshold(expression)
        return
    (judged,) = read(lines, accelerator_type="h100", thresholds=expression).thresholds
    assert judged.met is met


def test_a_phase_may_be_gated(read: Read) -> None:
    lines: list[str] = []
    for line in megatron(100):
        lines.append(line)
        if "elapsed time" in line:
            lines += ["(min, max) time across ranks (ms):",
                      f"    batch-generator {'.' * 32}: (5.00, 120.00)"]  # fmt: skip
    data, typed = read(lines, thresholds=["phase:data>10", "phase:date>10"]).thresholds
    assert data.met
    assert data.value == pytest.approx(12.0)
    assert (typed.met, typed.hint) == (None, "the log has data, other")


def test_options_are_checked_before_anything_is_read() -> None:
    for options in (
        {"tokens_per_step": 0}, {"tokens_per_step": math.nan}, {"peak_tflops": -1}, {"peak_tflops": math.inf},
        {"accelerator_type": "h1000"}, {"total_steps": 0},
        {"peak_tflops": 1, "accelerator_type": "h100"},
    ):  # fmt: skip
        with pytest.raises(UsageError):
            goodput_cli.analyze("no-such-log", **options)


def test_commands_take_what_the_library_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "train.log"
    log.write_text("\n".join(megatron(100)), encoding="utf-8")
    assert run(["steps", str(log), "-q", "--accelerator-type", "h100", "--total-steps", "200"]) == 0
    shown = capsys.readouterr().out
    assert "100 of 200 steps left" in " ".join(shown.split())
    assert "MFU of kept steps 40.44 %" in " ".join(shown.split())
    assert run(["timeline", str(log), "-q", "--total-steps", "200"]) == 2, "no command that shows no work has them"


HOSTILE: Sequence[object] = (0, -1, 1e308, "NaN", "Infinity", "1e999", -1e-300, 1e-300, True, None, [], "8", 2**70)
NAMES = (
    "tokens_per_step", "tokens_total", "tokens_per_second", "tokens_per_second_accelerator", "samples_per_step",
    "global_batch_size", "sequence_length", "samples_total", "samples_per_second", "flops_per_step", "flops_total",
    "tflops", "mfu", "accelerators", "world_size", "peak_flops", "total_steps", "rate_seconds",
)  # fmt: skip


def isfinite_text(line: str) -> bool:
    return not {"nan", "inf", "none"} & {*line.lower().replace(",", " ").split()}


def numbers(value: object) -> Iterable[float]:
    if isinstance(value, dict):
        for one in value.values():
            yield from numbers(one)
    elif isinstance(value, list):
        for one in value:
            yield from numbers(one)
    elif isinstance(value, int | float):
        yield value


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True),
    values=st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=8),
)
def test_bad_input_makes_no_bad_number(names: list[str], values: list[object], read: Read) -> None:
    """Any log contents: no exception, no invalid number, nothing below 0, and the ledger is the same."""
    metrics = {name: (lambda step, at=at: values[(step + at) % len(values)]) for at, name in enumerate(names)}
    plain = read([*recorded(30, lambda _: 1.0)])
    analysis = read([*recorded(30, lambda _: 1.0, **metrics)], accelerators=8, price_per_hour=1e-9)
    assert (analysis.goodput.ns, analysis.badput) == (plain.goodput.ns, plain.badput)
    answer = analysis.to_dict()
    for value in numbers(answer.get("inside", {})):
        assert math.isfinite(value)
        assert 0 <= value < 2**63
    summary_of_saved(answer, "saved")
    for measure in MEASURES.values():
        measure.of(summary_of(analysis))
    assert all(isfinite_text(line) for line in work_lines(analysis))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(4)), cuts=st.lists(st.integers(1, 70), min_size=3, max_size=3, unique=True))
def test_the_order_of_files_changes_nothing(order: list[int], cuts: list[int], tmp_path: Path) -> None:
    lines = [*recorded(
        40, lambda step: 1.0 + step % 3, tokens_per_step=lambda step: 100 + step, tflops=lambda _: 5.0,
        world_size=lambda step: 8 if step < 20 else 4,
    )]  # fmt: skip
    bounds = [0, *sorted(cuts), len(lines)]
    files = [tmp_path / f"{name}.jsonl" for name in order]
    for path, begin, end in zip(files, bounds[:-1], bounds[1:], strict=True):
        path.write_text("\n".join(lines[begin:end]) + "\n", encoding="utf-8")
    whole = tmp_path / "whole" / "log.jsonl"
    whole.parent.mkdir(exist_ok=True)
    whole.write_text("\n".join(lines) + "\n", encoding="utf-8")
    options: dict[str, Any] = {"peak_tflops": 100, "total_steps": 100}
    one = goodput_cli.analyze(whole, **options)
    assert one.work is not None
    assert one.eta is not None
    for named in (files, files[::-1], sorted(files)):
        several = goodput_cli.analyze(named, **options)
        assert (several.work, several.eta) == (one.work, one.eta)
