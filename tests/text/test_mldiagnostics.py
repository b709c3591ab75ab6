"""Metrics of google-cloud-mldiagnostics: the examples of the format, and measured values."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import goodput_cli
from goodput_cli.analysis.steps.sheet import step_report, steps_sheet
from goodput_cli.cli.main import run
from goodput_cli.events.accelerators.hooks import DEVICE_SAMPLES
from goodput_cli.report.base import Page, load_sheet_renderer
from goodput_cli.report.html.analysis import render
from goodput_cli.sources.cloud_logging_pages import LogQuery
from tests.support.answers import read_page
from tests.text.support import SAMPLES, analysed, codes, seconds, written

RUN = "llm-7b-c1-default-jobset-ab12-20260301-115500"
TWO = SAMPLES / "mldiagnostics-two-attempts.jsonl"


def entry(second: float, metric: str, run: str = RUN, **payload: Any) -> str:
    minutes, rest = divmod(second, 60)
    resource = {
        "type": "generic_node",
        "labels": {"project_id": "p", "location": "l", "namespace": metric, "node_id": run},
    }
    return json.dumps(
        {
            "logName": "projects/p/logs/ml_diagnostics_metric",
            "timestamp": f"2026-03-01T12:{int(minutes):02d}:{rest:09.6f}Z",
            "insertId": f"{metric}-{second}-{payload.get('process_index', '')}",
            "resource": resource,
            "jsonPayload": payload,
        }
    )


def steps(run: str = RUN, **seconds_by_step: float) -> list[str]:
    return [
        entry(at, "step_time", run, values=[2.0], step_index=int(name[1:]), unit="s")
        for name, at in seconds_by_step.items()
    ]


ONE = [
    entry(0, "mlrun_configs", userConfigs={"steps": 100}),
    *(entry(at, "tpu_duty_cycle", values=[80.0], process_index=str(host), hostname=f"h{host}")
      for at in range(5, 200, 10) for host in (0, 1)),
    *steps(s9=130, s19=150, s29=170, s39=190),
]  # fmt: skip


def read(folder: Path, lines: list[str], **options: Any) -> Any:
    return analysed(written(folder, run_jsonl="".join(f"{line}\n" for line in lines)), **options)


def test_run_has_its_start_and_activity(tmp_path: Path) -> None:
    for lines in (ONE, ONE[::-1], ONE + ONE):
        analysis = read(tmp_path / "one", lines)
        assert seconds(analysis) == {"program_startup": 110, "productive": 80, "other": 5}
        assert codes(analysis).isdisjoint({"unknown_keys", "stamps_go_back"})


def test_restart_uses_starts_and_activity(tmp_path: Path) -> None:
    analysis = analysed(TWO)
    assert seconds(analysis) == {
        "productive": 100,
        "program_startup": 210,
        "wasted_progress_from_disruption": 45,
        "infrastructure_recovery_from_disruption": 405,
        "other": 5,
    }
    lines = [line for line in TWO.read_text("utf-8").splitlines() if '"step_time"' in line]
    assert seconds(read(tmp_path / "bare", lines)) == {
        "productive": 80,
        "wasted_progress_from_disruption": 20,
        "infrastructure_recovery_from_disruption": 530,
    }


def test_runs_that_differ_in_start_time_are_attempts(tmp_path: Path) -> None:
    lines = steps("llm-20260301120000", s0=10, s1=12, s2=14) + steps("llm-20260301120100", s2=80, s3=82)
    analysis = read(tmp_path / "runs", lines)
    assert (analysis.job.name, analysis.job.attempts) == ("llm", 2)
    assert "runs_grouped" in codes(analysis)


def test_hash_runs_are_one_job_if_it_is_named(tmp_path: Path) -> None:
    lines = steps("a" * 64, s0=10, s1=12, s2=14) + steps("b" * 64, s2=80, s3=82)
    analysis = read(tmp_path / "runs", lines, job_name="llm")
    assert (analysis.job.name, analysis.job.attempts) == ("llm", 2)
    alone = read(tmp_path / "runs", lines, job_name="a" * 64)
    assert "runs_not_grouped" not in codes(alone)


CONFIG = {"global_batch_size": 64, "run_name": "llm-7b"}
FIRST, SECOND, THIRD = "a" * 64, "b" * 64, "c" * 64


def hashed(run: str, begins: float, numbers: range, config: dict[str, Any]) -> list[str]:
    """Return a run named by a hash: its configuration, and a step per second."""
    times = {f"s{number}": begins + 1 + place for place, number in enumerate(numbers)}
    return [entry(begins, "mlrun_configs", run, userConfigs=config), *steps(run, **times)]


@pytest.mark.parametrize("resumed", [range(6, 12), range(10, 16), range(1, 4)])
def test_hash_runs_that_continue_are_one_job(tmp_path: Path, resumed: range) -> None:
    lines = hashed(FIRST, 0, range(10), CONFIG) + hashed(SECOND, 60, resumed, CONFIG)
    analysis = read(tmp_path / "runs", lines)
    assert (analysis.job.name, analysis.job.attempts, analysis.job.last_step) == (FIRST, 2, resumed[-1])
    assert (analysis.job.kept_steps, analysis.job.kept_range) == (resumed[-1] + 1, (0, resumed[-1]))
    assert {"runs_grouped"} == codes(analysis) & {"runs_grouped", "runs_not_grouped"}
    for name in (SECOND, "llm-7b"):
        assert read(tmp_path / "runs", lines, job_name=name).job.attempts == 2
    assert read(tmp_path / "runs", lines, job_name=SECOND, exact_run_name=True).job.attempts == 1


def test_a_failed_start_between_hash_runs_is_an_attempt(tmp_path: Path) -> None:
    failed = hashed(SECOND, 30, range(0), CONFIG)
    lines = hashed(FIRST, 0, range(10), CONFIG) + failed + hashed(THIRD, 60, range(8, 12), CONFIG)
    assert read(tmp_path / "runs", lines).job.attempts == 3


@pytest.mark.parametrize(
    ("begins", "resumed", "config"),
    [
        (60, range(6), CONFIG),  # Both begin at the first step.
        (60, range(20, 26), CONFIG),  # Steps are missing between them.
        (5, range(6, 12), CONFIG),  # At once.
        (60, range(6, 12), CONFIG | {"global_batch_size": 128}),
        (60, range(6, 12), {}),
    ],
)
def test_unrelated_hash_runs_stay_separate(
    tmp_path: Path, begins: float, resumed: range, config: dict[str, Any]
) -> None:
    lines = hashed(FIRST, 0, range(10), CONFIG) + hashed(SECOND, begins, resumed, config)
    with pytest.raises(goodput_cli.GoodputError, match=r"contains 2 jobs: 'a{64}' \('llm-7b'\), 'b{64}'"):
        read(tmp_path / "runs", lines)
    assert read(tmp_path / "runs", lines, job_name=SECOND).job.attempts == 1


def test_run_that_may_continue_two_continues_neither(tmp_path: Path) -> None:
    lines = hashed(FIRST, 0, range(10), CONFIG) + hashed(SECOND, 30, range(10), CONFIG)
    lines += hashed(THIRD, 60, range(6, 12), CONFIG)
    with pytest.raises(goodput_cli.GoodputError, match="3 jobs"):
        read(tmp_path / "runs", lines)


@pytest.mark.parametrize(("numbers", "kept"), [(range(12), 12), (range(9, 60, 10), 60), (range(10, 61, 10), 60)])
def test_a_step_keeps_the_number_of_its_program(tmp_path: Path, numbers: range, kept: int) -> None:
    analysis = read(tmp_path / "run", hashed(RUN, 0, numbers, CONFIG))
    assert (analysis.job.last_step, analysis.job.kept_steps) == (numbers[-1], kept)


def test_mistyped_run_name_is_an_error(tmp_path: Path) -> None:
    lines = steps("llm-20260301120000", s0=10, s1=12, s2=14) + steps("vision-20260301120100", s2=80, s3=82)
    with pytest.raises(goodput_cli.GoodputError, match=r"no events for job 'lmm'; .*did you mean llm"):
        read(tmp_path / "runs", lines, job_name="lmm")
    with pytest.raises(goodput_cli.GoodputError, match="no events for job 'lm-7b'"):
        read(tmp_path / "one", steps("llm-20260301120000", s0=10, s1=12, s2=14), job_name="lm-7b")


def test_metrics_next_to_the_recorder_change_no_amount(tmp_path: Path) -> None:
    recorder = [
        json.dumps({"job_name": "LLM_7B", "job_start_time": 1_772_366_400.0}),
        *(
            json.dumps({"job_name": "LLM_7B", "step_count": n, "step_start_time": 1_772_366_410.0 + 2 * n})
            for n in range(90)
        ),
    ]
    alone = seconds(read(tmp_path / "alone", recorder))
    run = "llm-7b-20260301120005"
    metrics = [entry(5, "mlrun_configs", run, userConfigs={}), *steps(run, s9=30, s19=50, s29=70)]
    both = read(tmp_path / "both", recorder + metrics)
    assert (both.job.name, both.job.attempts, seconds(both)) == ("LLM_7B", 1, alone)


def test_measurements_are_next_to_step_times(tmp_path: Path) -> None:
    mfu = [entry(150 + at, "mfu", values=[40.0 + at, 42.0 + at], step_index=19 + at, unit="%") for at in range(3)]
    folder = written(tmp_path / "mfu", run_jsonl="\n".join([*ONE, *mfu]))
    analysis = analysed(folder)
    report = step_report(analysis, 3)
    metrics = json.loads(load_sheet_renderer("json")(steps_sheet(analysis, report), Page()))["metrics"]
    assert metrics["mfu"] == {
        "unit": "%", "samples": 3, "first_step": 19, "last_step": 21, "mean": 42.0, "median": 42.0, "p10": 41.2,
        "p90": 42.8, "series": [[19, 41.0], [20, 42.0], [21, 43.0]],
    }  # fmt: skip
    assert metrics["step_time"]["mean"] == 2.0


def test_silent_host_is_reported(tmp_path: Path) -> None:
    late = ("T12:02", "T12:03")
    lines = [line for line in ONE if '"process_index": "1"' not in line or not any(time in line for time in late)]
    assert "host_silent" in codes(read(tmp_path / "silent", lines))


@pytest.mark.parametrize("values", [[], None, ["x"], [float("nan")], 3])
def test_values_without_numbers_are_rejected(tmp_path: Path, values: Any) -> None:
    bad = entry(160, "loss", values=values, step_index=24).replace("NaN", "null")
    assert "bad_value" in codes(read(tmp_path / "bad", [*ONE, bad])) or values is None


def test_cloud_logging_query_selects_the_run() -> None:
    text = LogQuery("p", "ml_diagnostics_metric", "LLM 7B").text()
    assert 'resource.labels.node_id=~"^llm-7b(-|$)"' in text
    assert 'resource.labels.node_id="LLM 7B"' in text


def slowed(mfu: bool) -> list[str]:
    """Return 300 steps of 1 s, 100 of them slowed to 1.2 s; the MFU falls with them."""
    lines, at = [entry(0, "mlrun_configs", userConfigs={})], 10.0
    for step in range(300):
        slow = 100 <= step < 200
        at = round(at + (1.2 if slow else 1.0), 1)
        lines.append(entry(at, "step_time", values=[1.0], step_index=step, unit="s"))
        if mfu and step % 5 == 0:
            lines.append(entry(at, "mfu", values=[35.0 if slow else 42.0], step_index=step, unit="%"))
    return lines


def test_report_shows_measurements_without_changing_amounts(tmp_path: Path) -> None:
    analysis = read(tmp_path / "mfu", slowed(mfu=True))
    assert seconds(analysis) == seconds(read(tmp_path / "none", slowed(mfu=False)))
    page = read_page(render(analysis, Page()))
    assert page.by_id("metrics").all("figcaption")[0].text.startswith("Recorded by the program: MFU median 42, p10 35")
    text = page.text
    assert "MFU fell from 42 to 35 in the slow period of steps 100 to 199" in text
    rows = next(rows for rows in (one.rows() for one in page.all("table")) if any("step_time" in row for row in rows))
    assert [row[:3] for row in rows] == [["mfu", "%", "60"], ["step_time", "s", "300"]]
    assert [float(value) for value in rows[0][3:]] == [39.67, 42, 35, 42]


def printed(second: float, text: str, wrapped: bool) -> str:
    body = {"jsonPayload": {"message": text}} if wrapped else {"textPayload": text}
    entry = {"timestamp": f"2026-03-01T12:{int(second // 60):02d}:{second % 60:06.3f}Z", "insertId": f"p{second}"}
    return json.dumps({"logName": "projects/p/logs/python"} | entry | body)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(
    ("text", "ended", "found"),
    [
        ("Unhandled exception detected!", "crashed", {"wasted_progress_from_disruption": 5}),
        ("SIGTERM received (signum: 15). Exiting", "terminated", {"other": 5}),
        ("Program exiting normally. Sending 'COMPLETED' signal.", "clean", {"other": 5}),
    ],
)
def test_library_log_lines_show_how_a_run_ended(
    tmp_path: Path, text: str, ended: str, found: dict[str, float], wrapped: bool
) -> None:
    lines = [*ONE[:-1], *steps(s39=190), printed(1, f"MLRun '{RUN}' created successfully.", wrapped)]
    analysis = read(tmp_path / "run", [*lines, printed(195, text, wrapped)])
    assert (analysis.job.attempts, analysis.job.ending) == (1, ended)
    assert seconds(analysis) == {"program_startup": 110, "productive": 80} | found
    assert "unrecognised_lines" not in codes(analysis)


def test_lines_of_no_run_or_of_several_are_ignored(tmp_path: Path) -> None:
    crash = printed(160, "Unhandled exception detected!", wrapped=False)
    other = steps("another-run", s9=130, s19=150, s29=170)
    analysis = read(tmp_path / "runs", [*ONE, *other, crash], job_name=RUN)
    assert analysis.job.ending == "not_logged"


def test_exact_run_names_are_separate_jobs(tmp_path: Path) -> None:
    lines = steps("llm-20260301120000", s0=10, s1=12, s2=14) + steps("llm-20260301120100", s2=80, s3=82)
    analysis = read(tmp_path / "runs", lines, exact_run_name=True, job_name="llm-20260301120100")
    assert (analysis.job.name, analysis.job.attempts) == ("llm-20260301120100", 1)


def test_activity_can_be_excluded_from_the_query() -> None:
    text = LogQuery("p", "ml_diagnostics_metric", heartbeats=False).text()
    assert 'NOT resource.labels.namespace=("tpu_duty_cycle" OR ' in text
    assert "namespace" not in LogQuery("p", "goodput_llm", heartbeats=False).text()


def test_device_metrics_of_a_run_are_read(tmp_path: Path) -> None:
    analysis = read(tmp_path, ONE)
    found = analysis.accelerators
    assert [(row.host, row.device, row.rank, row.busy_percent) for row in found.devices] == [
        ("h0", "0", 0, 80.0), ("h1", "0", 1, 80.0),
    ]  # fmt: skip
    assert found.kwh is None
    labels = entry(
        5, "tpu_duty_cycle", values=[10, float("nan"), 101], hostname="h", accelerator_labels=["h-0", "h-1", "h-2"]
    )
    odd = read(tmp_path / "odd", [*ONE, labels, entry(6, "hbm_utilization", values=[70.0, 71], hostname="h")])
    assert {(one.device, one.quantity.name) for one in DEVICE_SAMPLES.of(odd.table) if one.host == "h"} == {
        ("0", "BUSY"), ("0", "MEMORY"), ("1", "MEMORY"),
    }  # fmt: skip
    assert "bad_sample" in codes(odd)
    assert seconds(odd) == seconds(analysis)


def test_metrics_of_steps_are_recorded_and_settings_are_sizes(tmp_path: Path) -> None:
    lines = [
        entry(0, "mlrun_configs", userConfigs={"max_target_length": "4096", "global_batch_size": 256, "steps": "7"}),
        *ONE[1:],
        entry(131, "loss", values=[2.5], step_index=9, unit="1"),
        entry(151, "my_metric", values=[3.0], step_index=19, unit="1"),
        entry(152, "world_size", values=[3.0], step_index=19),
    ]
    analysis = read(tmp_path, lines)
    found = {one.name: one.value.tolist() for one in analysis.table.metrics}
    assert (found["loss"], found["my_metric"], found["sequence_length"]) == ([2.5], [3.0], [4096.0])
    assert (found["global_batch_size"], "world_size" in found, "total_steps" in found) == ([256.0], False, False)
    assert seconds(analysis) == seconds(read(tmp_path / "without", ONE))


def test_loss_that_is_not_a_number_is_evidence(tmp_path: Path) -> None:
    line = entry(190.5, "loss", values=["NaN"], step_index=39, unit="1")
    analysis = read(tmp_path, [*ONE, line])
    assert [(one.code, one.text) for one in analysis.table.observed.rows] == [("not_finite", "loss NaN at step 39")]
    assert codes(analysis).isdisjoint({"bad_value"})


def test_profile_sessions_are_shown_without_claiming_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = [
        printed(140, "profiling_status: context_started (session_phase: ACTIVE)", wrapped=False),
        printed(155, "profiling_status: context_stopped (session_phase: SUCCEEDED)", wrapped=False),
        printed(180, "profiling_status: started (session_phase: ACTIVE)", wrapped=True),
    ]
    analysis = read(tmp_path, [*ONE, *said])
    assert seconds(analysis) == seconds(read(tmp_path / "without", ONE))
    assert run(["timeline", str(tmp_path / "run.jsonl"), "-q"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"12:02:20 +15\.0 s +profile session +-?\n", out)
    assert re.search(r"12:03:00 +- +profile session \(no end\)", out)
