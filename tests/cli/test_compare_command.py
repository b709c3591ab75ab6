"""`goodput compare` for people and CI jobs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from goodput_cli.cli.main import run
from goodput_cli.vocabulary.text import duration_of_seconds
from tests.support.answers import check_answer, check_golden, page_text
from tests.support.story import Line, end, start, steps

ROOT = Path(__file__).parent.parent.parent
SAMPLES = ROOT / "sample_logs"
NIGHT, MORNING, PRIMER = "llm-pretrain.jsonl", "llm-pretrain-r2.jsonl", "primer-50-percent.jsonl"
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def samples(folder: Path) -> None:
    """Copy the sample logs into the directory of the test."""
    for name in (NIGHT, MORNING, PRIMER):
        (folder / name).symlink_to(SAMPLES / name)


def compare(capsys: Output, *arguments: str) -> tuple[int, str, str]:
    code = run(["compare", *arguments])
    return code, *capsys.readouterr()


def as_json(capsys: Output, *arguments: str) -> Any:
    code, out, _ = compare(capsys, *arguments, "--format", "json")
    assert code == 0
    return json.loads(out)


def log(folder: Path, name: str, *lines: Line, job: str = "j") -> str:
    text = "\n".join(lines).replace('"job_name": "j"', f'"job_name": "{job}"')
    (folder / name).write_text(text + "\n")
    return name


def short_run(job_seconds: int, at: int = 0) -> list[Line]:
    return [start(at), *steps(0, 6, at=at + 10), end(at + job_seconds)]


@pytest.mark.parametrize(("name", "ending"), [("table", "txt"), ("markdown", "md"), ("csv", "csv"), ("json", "json")])
def test_every_format_is_as_expected(capsys: Output, name: str, ending: str) -> None:
    code, out, err = compare(capsys, NIGHT, MORNING, "-q", "--format", name, "--fail-if", "goodput:-1pp")
    assert (code, err) == (
        3,
        "threshold goodput:-1pp: FAILED (-1.08 pp, limit -1 pp; inconclusive: step times drift)\n",
    )
    check_golden(f"compare.{ending}", out)


def test_third_side_with_other_records_is_compared(capsys: Output) -> None:
    code, out, err = compare(capsys, PRIMER, NIGHT, MORNING, "--reference-step-time", "8", "--warn-if", "attempts:+3")
    assert code == 0
    assert "threshold attempts:+3 of llm-pretrain-7b: warning (+4, limit +3)" in err
    assert "threshold attempts:+3 of llm-pretrain-7b-r2: passed (+0, limit +3)" in err
    check_golden("compare-three.txt", out)


def test_json_agrees_with_the_schema(capsys: Output) -> None:
    for arguments in ([NIGHT, MORNING, "--warn-if", "goodput:-1%"], [PRIMER, MORNING, NIGHT], [NIGHT, NIGHT]):
        check_answer(as_json(capsys, *arguments), "comparison")


def test_all_formats_contain_the_same_numbers(capsys: Output) -> None:
    answer = as_json(capsys, NIGHT, MORNING)["comparisons"][0]
    rows = list(csv.DictReader(io.StringIO(compare(capsys, NIGHT, MORNING, "--format", "csv")[1])))
    in_csv = {row["name"] + row["label"]: row["points"] for row in rows if row["kind"] == "category"}
    in_json = {one["category"] + (one["label"] or ""): one["points"] for one in answer["waterfall"]}
    assert {name: float(points) for name, points in in_csv.items() if name != "one_sided"} == in_json
    assert float(rows[0]["change"]) == answer["goodput_points"]
    page = compare(capsys, NIGHT, MORNING, "--format", "html")[1].replace("\N{NO-BREAK SPACE}", " ")
    table = compare(capsys, NIGHT, MORNING)[1]
    full = compare(capsys, NIGHT, MORNING, "--full")[1]
    assert all(f"{one['points']:+.2f}" in full for one in answer["waterfall"])
    for one in answer["waterfall"]:
        if "moved" in one:
            took = duration_of_seconds(abs(one["work_seconds"]))
            assert all(took in text for text in (table, page))
    folded = [one for one in answer["waterfall"] if "moved" not in one]
    assert f"{len(folded) + 1} without a verdict" in table  # These include productive time.
    change = f"{abs(answer['work']['change_percent']):.1f} % less"
    assert all(text.count(change) >= 2 for text in (table, page))  # the headline and the total of the table


def test_saved_baseline_answers_as_its_log_does(folder: Path, capsys: Output) -> None:
    assert run(["analyze", NIGHT, "-q", "-o", "baseline.json"]) == 0
    from_log, from_saved = as_json(capsys, NIGHT, MORNING), as_json(capsys, "baseline.json", MORNING)
    assert from_saved["comparisons"] == from_log["comparisons"]
    assert from_saved["diagnostics"] == from_log["diagnostics"]
    assert [side["saved"] for side in from_saved["sides"]] == [True, False]


def test_gate_accepts_a_saved_baseline(capsys: Output) -> None:
    assert run(["analyze", NIGHT, "-q", "-o", "baseline.json"]) == 0
    assert compare(capsys, "baseline.json", MORNING, "-q", "--fail-if", "goodput:-2pp")[0] == 0
    assert compare(capsys, "baseline.json", MORNING, "-q", "--fail-if", "goodput:-1pp")[0] == 3
    assert compare(capsys, "baseline.json", MORNING, "-q", "--warn-if", "goodput:-1pp")[0] == 0
    assert compare(capsys, "baseline.json", MORNING, "-q", "--fail-if", "queued:+1pp")[0] == 4


def test_report_is_written_after_a_failed_threshold(folder: Path, capsys: Output) -> None:
    code, out, _ = compare(capsys, NIGHT, MORNING, "-q", "--fail-if", "goodput:-1pp", "-o", "c.md", "-o", "c.html")
    assert (code, out) == (3, "")
    assert "goodput 69.35 %, was 70.43 %" in (folder / "c.md").read_text()
    assert "70.43 % to 69.35 %" in page_text(folder / "c.html")


def test_saved_answer_is_read_from_standard_input(
    folder: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["analyze", NIGHT, "-q", "-o", "baseline.json"]) == 0
    with open("baseline.json", "rb") as stream:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
        assert "goodput 69.35 %, was 70.43 %" in compare(capsys, "-", MORNING)[1]


def test_two_jobs_of_one_log_are_compared(folder: Path, capsys: Output) -> None:
    log(folder, "a.jsonl", *short_run(70), job="before")
    log(folder, "b.jsonl", *short_run(90, at=1000), job="after")
    both = (folder / "a.jsonl").read_text() + (folder / "b.jsonl").read_text()
    (folder / "both.jsonl").write_text(both)
    answer = as_json(capsys, "both.jsonl", "-j", "before", "-j", "after")
    assert [(side["name"], side["source"]) for side in answer["sides"]] == [
        ("before", "both.jsonl"),
        ("after", "both.jsonl"),
    ]
    assert answer["comparisons"] == as_json(capsys, "a.jsonl", "b.jsonl")["comparisons"]


def test_two_runs_of_one_job_are_compared(folder: Path, capsys: Output) -> None:
    log(folder, "twice.jsonl", *short_run(70), *short_run(90, at=1000))
    answer = as_json(capsys, "twice.jsonl", "--run", "1", "--run", "last")
    assert [side["name"] for side in answer["sides"]] == ["twice.jsonl, run 1", "twice.jsonl, run last"]
    assert [side["window"]["ns"] // 10**9 for side in answer["sides"]] == [70, 90]


def test_sides_of_one_job_are_named_by_file_then_by_number(folder: Path, capsys: Output) -> None:
    log(folder, "a.jsonl", *short_run(70))
    log(folder, "b.jsonl", *short_run(90))
    assert [side["name"] for side in as_json(capsys, "a.jsonl", "b.jsonl")["sides"]] == ["a.jsonl", "b.jsonl"]
    assert [side["name"] for side in as_json(capsys, "a.jsonl", "a.jsonl")["sides"]] == ["a.jsonl (1)", "a.jsonl (2)"]


def test_baseline_can_be_another_than_the_first(capsys: Output) -> None:
    for arguments in ([NIGHT, MORNING, "--baseline", MORNING], [NIGHT, "--baseline", MORNING]):
        answer = as_json(capsys, *arguments)
        assert [side["job"] for side in answer["sides"]] == ["llm-pretrain-7b-r2", "llm-pretrain-7b"]
        assert answer["comparisons"][0]["goodput_points"] > 1


def test_options_apply_to_every_log(capsys: Output) -> None:
    answer = as_json(capsys, NIGHT, MORNING, "--reference-step-time", "8", "--from", "+0s", "--to", "+1h")
    assert [side["window"]["ns"] for side in answer["sides"]] == [3600 * 10**9] * 2
    assert [side["reference"]["step_time_seconds"] for side in answer["sides"]] == [8.0, 8.0]
    assert "methods_differ" not in {found["code"] for found in answer["diagnostics"]}


def test_baseline_with_other_options_is_reported(capsys: Output) -> None:
    assert run(["analyze", NIGHT, "-q", "-o", "baseline.json", "--reference-step-time", "8"]) == 0
    code, _, err = compare(capsys, "baseline.json", MORNING)
    assert code == 0
    assert "methods_differ" in err
    assert "reference step time none instead of 8.0 s (given)" in err
    assert compare(capsys, "baseline.json", MORNING, "-q", "--strict")[0] == 5


def test_threshold_on_logged_references_is_a_warning(capsys: Output) -> None:
    _, _, err = compare(capsys, PRIMER, PRIMER, "--warn-if", "goodput:-1pp")
    assert "primer-50-percent.jsonl (1) itself. Pin it with --reference-step-time 120" in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("", 2, "no SOURCE"),
        (NIGHT, 2, "nothing to compare"),
        (f"{NIGHT} --baseline {NIGHT}", 2, "nothing to compare"),
        (f"{NIGHT} {MORNING} {PRIMER} -j a -j b", 2, "2 x --job-name for 3 runs"),
        (f"{NIGHT} {MORNING} --run 1 --run 1 --run 1", 2, "2 x SOURCE for 3 runs"),
        (f"{NIGHT} missing.jsonl", 1, "missing.jsonl: no such file"),
        (f"{NIGHT} {MORNING} -j nobody", 4, "llm-pretrain.jsonl: no events for job 'nobody'"),
        (f"{NIGHT} --run 1 --run 2", 2, "llm-pretrain.jsonl: run 2 does not exist"),
        (f"{NIGHT} missing.jsonl --fail-if godput:-2pp", 2, "did you mean goodput"),
        (f"{NIGHT} missing.jsonl --fail-if goodput:2pp", 2, "has no sign\ntip: add one"),
        (f"{NIGHT} missing.jsonl --warn-if goodput<2", 2, "For one log, use `goodput analyze --fail-if`"),
        (f"{NIGHT} missing.jsonl -o {NIGHT} --force", 2, "unknown file extension"),
        ("baseline.json missing.jsonl -o baseline.json --force", 2, "is one of the input logs"),
        (f"{MORNING} --baseline baseline.json -o baseline.json --force", 2, "is one of the input logs"),
        (f"baseline.json {MORNING} -j nobody -j llm-pretrain-7b-r2", 4, "is a saved answer of job"),
        (f"baseline.json {MORNING} --run 1 --run last", 2, "use --run once"),
        (f"rolling.json {MORNING}", 1, "another answer of goodput"),
    ],
)
def test_incomparable_sides_are_rejected(capsys: Output, arguments: str, code: int, words: str) -> None:
    assert run(["analyze", NIGHT, "-q", "-o", "baseline.json"]) == 0
    assert run(["rolling", NIGHT, "-q", "-o", "rolling.json"]) == 0
    found, out, err = compare(capsys, *arguments.split())
    assert (found, out) == (code, "")
    assert words in err


def test_job_and_run_given_once_apply_only_to_logs(capsys: Output) -> None:
    assert run(["analyze", NIGHT, "-q", "-o", "baseline.json"]) == 0
    assert compare(capsys, "baseline.json", MORNING, "-j", "llm-pretrain-7b-r2", "--run", "last")[0] == 0


def test_options_are_read_from_the_environment(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOODPUT_COMPARE_FAIL_IF", "goodput:-1pp;disruptions:+9")
    monkeypatch.setenv("GOODPUT_COMPARE_BASELINE", NIGHT)
    assert compare(capsys, MORNING)[0] == 3


def test_project_settings_apply_to_a_comparison(folder: Path, capsys: Output) -> None:
    top = 'fail-if = ["goodput<90"]\nrun = "last"\nstall-factor = 3\n'
    job = "[job.llm-pretrain-7b]\nreference-step-time = 8\n"
    (folder / "goodput.toml").write_text(f'{top}[compare]\nfail-if = ["goodput:-1pp"]\n{job}')
    code, out, err = compare(capsys, NIGHT, MORNING, "--format", "json")
    assert code == 3
    assert "threshold goodput:-1pp: FAILED" in err
    sides = json.loads(out)["sides"]
    assert [(side["run"], side["method"]["stall_factor"]) for side in sides] == [("last", 3.0)] * 2
    one_job = json.loads(compare(capsys, NIGHT, NIGHT, "-j", "llm-pretrain-7b", "--format", "json")[1])
    assert [side["reference"]["step_time_seconds"] for side in one_job["sides"]] == [8.0, 8.0]
