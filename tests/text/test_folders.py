"""Which files and folders of text are one job (docs/formats.md): `analyze`, `jobs` and `fleet` agree, whatever the
order of files."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.phrases import all_headline_warnings
from goodput_cli.cli.main import run
from goodput_cli.errors import NotEnoughData, UsageError
from tests.text.support import analysed

BEGIN = datetime(2026, 3, 1, 10, tzinfo=UTC)
ERROR = (
    'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\nRuntimeError: CUDA error: an illegal '
    "memory access was encountered\n"
)
DONE = "[{at}] [after training is done] datetime: {at}\n"
Output = pytest.CaptureFixture[str]


def at(second: int) -> str:
    return f"{BEGIN + timedelta(seconds=second):%Y-%m-%d %H:%M:%S}"


def printed(begin: int, first: int = 1, last: int = 60) -> str:
    """Return Megatron output of 1 s steps; the first one is completed 10 s after the begin."""
    return "".join(
        f"[{at(begin + 10 + step - first)}] iteration {step:8d}/ 1000 | consumed samples: {step:12d} | elapsed time "
        f"per iteration (ms): 1000.0 | learning rate: 1.0E-04 | lm loss: 2.0E+00 |\n"
        for step in range(first, last + 1)
    )


def put(top: Path, **files: str) -> Path:
    """Write files in a folder; `__` replaces `/`, and `_` before the ending the dot."""
    for name, text in files.items():
        stem, _, ending = name.replace("__", "/").rpartition("_")
        path = top / f"{stem}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return top


def jobs(folder: Path, capsys: Output) -> dict[str, int]:
    """Return the attempts of each job, for which `analyze`, `jobs` and `fleet` must have the same goodput."""
    listed = {one.name: one for one in goodput_cli.jobs(str(folder)).jobs}
    capsys.readouterr()
    assert run(["fleet", str(folder), "--format", "json"]) == 0
    rows = {row["job"]: row["goodput_ns"] for row in json.loads(capsys.readouterr().out)["runs"]}
    alone = {name: analysed(folder, job_name=name if len(listed) > 1 else None) for name in listed}
    assert rows == {name: one.goodput_ns for name, one in listed.items()}
    assert rows == {name: one.goodput.ns for name, one in alone.items()}
    assert {name: one.job.name for name, one in alone.items()} == {name: name for name in listed}
    return {name: one.attempts or 0 for name, one in listed.items()}


def renamed(log: object) -> list[str]:
    """Return the `job_renamed` messages of an analysis."""
    return [one.message for one in getattr(log, "diagnostics") if one.code == "job_renamed"]  # noqa: B009


def test_old_job_name_is_accepted_with_the_new_one_reported(tmp_path: Path) -> None:
    """`exp1/llama` and `exp2/llama` were both named `llama`, and `exp3/sft` was named `sft`."""
    some = put(tmp_path, exp1__llama_log=printed(0), exp2__llama_log=printed(100), exp3__sft_log=printed(300))
    alone, both = analysed(some, job_name="sft"), analysed(some, job_name="llama")
    assert renamed(alone) == [
        "sft is named exp3/sft since 0.2. Use the new name; until 0.3 --job-name accepts the old one"
    ]
    assert "llama was the name of 2 jobs before 0.2: exp1/llama and exp2/llama." in renamed(both)[0]
    assert (alone.job.attempts, both.job.attempts) == (1, 2)
    assert renamed(analysed(some, job_name="exp3/sft")) == []
    for name, asked in (("sft", alone), ("llama", both)):
        listed = goodput_cli.jobs(str(some), job_name=name)
        assert [(one.name, one.goodput_ns) for one in listed.jobs] == [(name, asked.goodput.ns)]
        assert renamed(listed)
    fleet = goodput_cli.fleet_report(str(some), jobs=["llama"])
    assert [row.job for row in fleet.runs] == ["exp1/llama", "exp2/llama"]
    assert len(renamed(fleet)) == 1


def test_current_job_name_precedes_old_names(tmp_path: Path) -> None:
    some = put(tmp_path, llama_log=printed(0), exp1__llama_log=printed(200), exp2__train_log=printed(400))
    assert analysed(some, job_name="llama").job.attempts == 1
    assert [row.job for row in goodput_cli.fleet_report(str(some), jobs=["llama"]).runs] == ["llama"]
    assert [one.attempts for one in goodput_cli.jobs(str(some), job_name="llama").jobs] == [1]


def test_mistyped_job_name_is_an_error(tmp_path: Path) -> None:
    """Regression: all text was read under the unknown name, and the last of twenty jobs in a folder was returned."""
    some = put(tmp_path, gpt_09__a_log=printed(0), gpt_10__b_log=printed(20), clip_19__c_log=printed(500))
    with pytest.raises(NotEnoughData, match=r"no events for job 'gpt_9/a'; .*did you mean gpt_09/a"):
        analysed(some, job_name="gpt_9/a")
    assert analysed(some, job_name="gpt_9/a", join=True).job.name == "gpt_9/a"
    recorded = "".join(json.dumps({"job_name": "gpt", "job_start_time": at}) + "\n" for at in (0, 9))
    beside = put(tmp_path / "gpt_09", events_jsonl=recorded)
    with pytest.raises(NotEnoughData, match="did you mean gpt"):
        analysed(beside, job_name="gtp")


def test_single_job_accepts_any_name(tmp_path: Path) -> None:
    """Its text contains no name; if it does, a diagnostic reports it."""
    unnamed = analysed(put(tmp_path / "a", train_log=printed(0)), job_name="mine")
    own = "  wandb_exp_name ....... llm\n" + printed(0)
    named = analysed(put(tmp_path / "b", train_log=own), job_name="mine")
    assert unnamed.job.name == named.job.name == "mine"
    said = {one.code: one.message for one in named.diagnostics}
    assert said["job_named_otherwise"] == "the log names the job llm; it is read as mine (from --job-name)"
    assert "job_named_otherwise" not in {one.code for one in unnamed.diagnostics}


def test_job_of_a_folder_is_listed_alone(tmp_path: Path) -> None:
    """Regression: all text of the sources had the requested name and was listed as one job."""
    some = put(tmp_path, exp1__train_log=printed(0), exp2__train_log=printed(100))
    assert [(one.name, one.attempts) for one in goodput_cli.jobs(str(some), job_name="exp1").jobs] == [("exp1", 1)]
    assert [(one.name, one.attempts) for one in goodput_cli.jobs(str(some), job_name="mine").jobs] == [("mine", 2)]


def test_tables_with_old_job_names_are_matched(tmp_path: Path) -> None:
    """The allocations of `llama` are within the time of both jobs, or of one."""
    some = put(tmp_path / "logs", exp1__llama_log=printed(0), exp2__llama_log=printed(20), exp3__sft_log=printed(300))
    labels, held = tmp_path / "labels.csv", tmp_path / "held.csv"
    labels.write_text("job,team\nllama,vision\nexp3/sft,nlp\nsft,other\n")
    span = "2026-03-01T10:00:00Z,2026-03-01T10:{}:00Z"
    held.write_text(f"job,start,end,accelerators\nllama,{span.format('01')},8\nsft,{span.format('20')},4\n")
    report = goodput_cli.fleet_report(str(some), labels=[labels], allocations=[held])
    assert {row.job: (row.team, row.accelerators) for row in report.runs} == {
        "exp1/llama": ("vision", None), "exp2/llama": ("vision", None), "exp3/sft": ("nlp", 4),
    }  # fmt: skip
    said = sorted(message.partition("until 0.3 ")[2] for message in renamed(report))
    assert said == [
        "allocations may use the old name", "an allocation that matches several of them is assigned to none",
        "labels may use the old name", "labels may use the old name",
    ]  # fmt: skip
    apart = put(tmp_path / "apart", exp1__llama_log=printed(0), exp2__llama_log=printed(300))
    report = goodput_cli.fleet_report(str(apart), allocations=[held])
    assert [row.accelerators for row in report.runs] == [8, None]


def test_settings_with_an_old_job_name_apply(tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings for another job whose name only ends the same are rejected."""
    put(tmp_path, exp1__llama_log=printed(0), exp2__sft_log=printed(300))
    (tmp_path / "goodput.toml").write_text("[job.llama]\nfail-if = 'goodput>50'\n[job.run]\nstall-factor = 2\n")
    monkeypatch.chdir(tmp_path)
    assert run(["analyze", ".", "-j", "exp1/llama"]) == 3
    assert "job_renamed: llama is named exp1/llama since 0.2" in capsys.readouterr().err
    for command in ("jobs", "fleet", "steps"):
        assert run([command, ".", "-j", "exp1/llama"]) == 0
        assert "job_renamed: llama is named exp1/llama since 0.2" in capsys.readouterr().err
    start = '{"job_name": "team/run", "job_start_time": 1768249800.0}\n'
    (tmp_path / "run.jsonl").write_text(start + start.replace("start", "end").replace("800", "900"))
    for command in ("analyze", "jobs"):
        assert run([command, "run.jsonl", "-j", "team/run"]) == 2
        assert "the settings of the job 'run' do not apply to 'team/run'" in capsys.readouterr().err
    assert run(["compare", "exp1/llama.log", "exp2/sft.log", "-j", "exp1/llama"]) == 0
    assert "warning: goodput.toml: [job.llama] is not applied to exp1/llama" in capsys.readouterr().err


def test_sweep_in_numbered_folders_is_one_job_each(tmp_path: Path, capsys: Output) -> None:
    """Three runs in sequence, each from its first step: three restarts without a restore are implausible."""
    behind = {f"multirun__2026-03-01__10-00-00__{n}__train_log": printed(100 * n) for n in range(3)}
    assert jobs(put(tmp_path / "a", **behind), capsys) == {f"multirun/{n}": 1 for n in range(3)}
    beside = {f"multirun__2026-03-01__10-00-00__{n}__train_log": printed(2 * n) for n in range(3)}
    assert jobs(put(tmp_path / "b", **beside), capsys) == {f"multirun/{n}": 1 for n in range(3)}
    named = put(tmp_path / "c", exp1__train_log=printed(0), exp2__train_log=printed(100))
    assert jobs(named, capsys) == {"exp1": 1, "exp2": 1}
    with pytest.raises(UsageError, match="'exp1', 'exp2'"):
        analysed(named)
    assert analysed(named, join=True).job.attempts == 2


def test_files_with_specific_names_are_jobs_of_their_folders(tmp_path: Path, capsys: Output) -> None:
    sweep = put(tmp_path / "a", exp1__llama_log=printed(0), exp2__llama_log=printed(100))
    assert jobs(sweep, capsys) == {"exp1/llama": 1, "exp2/llama": 1}
    assert analysed(sweep, job_name="llama").job.attempts == 2  # With --job-name, they are one job.
    beside = put(tmp_path / "b", alpha__llama_log=printed(0), beta__llama_log=printed(20), beta__sft_log=printed(300))
    assert jobs(beside, capsys) == {"alpha/llama": 1, "beta/llama": 1, "beta/sft": 1}
    lives = {f"llm__attempt_{n}__llama_log": printed(200 * n) for n in range(2)}
    assert jobs(put(tmp_path / "c", **lives, other__train_log=printed(0)), capsys) == {"llm/llama": 2, "other": 1}
    nodes = {f"{host}__llama_log": printed(0) + printed(400, 51, 90) for host in ("gpu-a17", "gpu-b03")}
    assert jobs(put(tmp_path / "d", **nodes), capsys) == {"llama": 2}


def test_folders_named_by_days_and_months_are_dates(tmp_path: Path, capsys: Output) -> None:
    days = {"monday__train_log": printed(0) + ERROR, "tuesday__train_log": printed(86_400, 51)}
    assert jobs(put(tmp_path / "llm", **days), capsys) == {"train": 2}
    months = {"jan__train_log": printed(0), "feb__train_log": printed(86_400)}
    assert jobs(put(tmp_path / "two", **months), capsys) == {"jan": 1, "feb": 1}


def test_warning_is_in_the_fleet_row_and_next_to_the_headline(tmp_path: Path, capsys: Output) -> None:
    crash = [{"job_start_time": 0}, *({"step_count": n, "step_start_time": n} for n in range(1, 301))]
    again = [{"job_end_time": 302}, {"job_start_time": 310}]
    again += [{"step_count": n, "step_start_time": 310 + n} for n in range(1, 31)]
    begin = BEGIN.timestamp()
    lines = [
        json.dumps({"job_name": "c", **{k: v + begin if k.endswith("time") else v for k, v in one.items()}})
        for one in (*crash, *again, {"job_end_time": 341})
    ]
    other = printed(0).replace("2.0E+00", "3.0E+00")
    put(tmp_path, c__c_jsonl="\n".join(lines), b__sweep_1_log=printed(0), b__sweep_2_log=other, a__train_log=printed(0))
    assert run(["fleet", str(tmp_path), "--format", "json"]) == 0
    rows = {row["job"]: row["doubts"] for row in json.loads(capsys.readouterr().out)["runs"]}
    assert rows["a"] == []
    assert [doubt.partition(":")[0] for doubt in rows["b"]] == [
        "2 files record the same steps at the same times with different losses"
    ]
    assert [doubt.rpartition("(")[2] for doubt in rows["c"]] == ["goodput of the last run alone: 96.77 %)"]
    alone = {job: analysed(tmp_path, job_name=job) for job in rows}
    assert list(all_headline_warnings(alone["b"])) == rows["b"]
    assert list(all_headline_warnings(alone["c"])) == [
        *rows["b"],
        *rows["c"],
    ]  # Diagnostics of text are about the whole log.
    assert run(["fleet", str(tmp_path), "--format", "table"]) == 0
    assert "c: 2 runs share this name" in " ".join(capsys.readouterr().out.split())


def test_numbered_folders_that_continue_are_one_job(tmp_path: Path, capsys: Output) -> None:
    dated = {"2026-03-01_10-00-00__train_log": printed(0) + ERROR, "2026-03-01_10-05-00__train_log": printed(300, 31)}
    assert jobs(put(tmp_path / "llm", **dated), capsys) == {"train": 2}


def test_numbered_launches_are_one_job_even_from_step_one(tmp_path: Path, capsys: Output) -> None:
    fleet = {
        f"{job}__attempt_{n}__train_log": printed(200 * n, last=40 + 40 * n)
        for job in ("alpha", "beta")
        for n in range(2)
    }
    assert jobs(put(tmp_path, **fleet), capsys) == {"alpha": 2, "beta": 2}


def test_nodes_are_one_job_whatever_their_folder_names(tmp_path: Path, capsys: Output) -> None:
    log = printed(0) + printed(400, 51, 90)
    assert jobs(put(tmp_path / "a", node0__train_log=log, node1__train_log=log), capsys) == {"train": 2}
    fleet = {f"{job}__{host}__train_log": log for job in ("alpha", "beta") for host in ("gpu-a17", "gpu-b03")}
    for path in fleet:
        fleet[path] = log if path.startswith("alpha") else printed(7)
    assert jobs(put(tmp_path / "b", **fleet), capsys) == {"alpha": 2, "beta": 1}


def test_array_tasks_are_jobs_if_parallel_else_attempts(tmp_path: Path, capsys: Output) -> None:
    sweep = {f"slurm-12_{n}_out": printed(2 * n, last=120) for n in range(3)}
    assert jobs(put(tmp_path / "sweep", **sweep), capsys) == {f"slurm-12_{n}": 1 for n in range(3)}
    chain = {f"slurm-12_{n}_out": printed(150 * n, 1 + 60 * n, 60 + 60 * n) for n in range(3)}
    assert jobs(put(tmp_path / "chain", **chain), capsys) == {"chain": 3}


def test_death_in_an_error_file_ends_its_own_launch(tmp_path: Path) -> None:
    logs = put(tmp_path, **{"slurm-31_out": printed(0), "slurm-31_err": ERROR, "slurm-32_out": printed(200, 31)})
    analysis = analysed(logs)
    assert (analysis.job.attempts, analysis.timeline.causes.why[0].code) == (2, "device_error")
    ((began, _),) = [(one.next_start_ns, one) for one in analysis.disruptions]
    assert began == int((BEGIN + timedelta(seconds=209)).timestamp()) * 10**9  # The first step took a second.


def test_restarted_files_are_jobs_by_name_attempts_by_number(tmp_path: Path, capsys: Output) -> None:
    assert jobs(put(tmp_path / "a", sft_log=printed(0), dpo_log=printed(100)), capsys) == {"sft": 1, "dpo": 1}
    assert jobs(put(tmp_path / "b", night1_log=printed(0), night2_log=printed(100)), capsys) == {"b": 2}
    assert jobs(put(tmp_path / "c", first_log=printed(0), second_log=printed(100, 31)), capsys) == {"c": 2}


def test_finished_nights_are_runs_of_one_job(tmp_path: Path) -> None:
    nights = {f"night{n}_log": printed(200 * n) + DONE.format(at=at(200 * n + 75)) for n in range(3)}
    folder = put(tmp_path / "llm", **nights)
    rows = goodput_cli.jobs(str(folder)).jobs
    assert [(row.name, row.run, row.attempts, row.ending) for row in rows] == [
        ("llm", n, 1, "clean") for n in (1, 2, 3)
    ]
    assert analysed(folder).job.attempts == 1
    assert analysed(folder, run="all").job.attempts == 3


LAUNCHED = (
    "[2026-03-01 10:00:{second:02d},100] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: 1) "
    "local_rank: 1 (pid: 14) of binary: /usr/bin/python3\n"
)


def test_unjudged_job_is_listed_in_any_folder(tmp_path: Path, capsys: Output) -> None:
    """Its folder is read before all others, whose times are the window, and both alone and with its neighbors."""
    some = put(tmp_path, a__launcher_log=LAUNCHED.format(second=0) + LAUNCHED.format(second=20))
    put(some, a__logs__attempt_0__0__stderr_log="step 1\nstep 2\nstep 3\nstep 4\n" + ERROR, b__sft_log=printed(3000))
    report = goodput_cli.fleet_report(str(some))
    assert [row.job for row in report.runs] == ["b/sft"]
    assert [row.name for row in report.not_analysed if row.what == "job"] == ["a/launcher"]
    with pytest.raises(Exception, match="goodput is unknown"):
        goodput_cli.fleet_report(str(some / "a"))


@pytest.mark.parametrize(
    "files",
    [
        {"run__node-0_log": printed(0), "run__node-1_log": printed(0), "run__gpu-b03_log": ERROR},
        {"run__node-0__train_log": printed(0), "run__node-1__train_log": printed(0), "run__node-2__train_log": ERROR},
    ],
    ids=["files of a folder", "folders of nodes"],
)
def test_file_with_only_a_death_joins_the_job_next_to_it(tmp_path: Path, capsys: Output, files: dict[str, str]) -> None:
    """Regression: fleets and lists omitted the death and reported the file as unreadable."""
    some = put(tmp_path, **files)
    ((name, _),) = jobs(some, capsys).items()
    report = goodput_cli.fleet_report(str(some))
    assert [(row.job, row.failures, row.ending) for row in report.runs] == [(name, 1, "crashed")]
    assert not report.not_analysed
    assert [one.ending for one in goodput_cli.jobs(str(some)).jobs] == [analysed(some).job.ending] == ["crashed"]


def test_file_without_steps_is_another_job_days_later(tmp_path: Path) -> None:
    """Nothing joins two programs of other names that do not overlap; a later output of the same name is an attempt."""
    start = f"[before the start of training step] datetime: {at(0)}\n"
    later = 4 * 86_400
    apart = put(tmp_path / "apart", sft_log=start, rl_log=printed(later))
    assert {one.name for one in goodput_cli.jobs(str(apart)).jobs} == {"sft", "rl"}
    again = put(tmp_path / "again", **{"run-1_log": start, "run-2_log": printed(later)})
    assert len(goodput_cli.jobs(str(again)).jobs) == 1


def test_short_tasks_of_an_array_are_jobs_of_their_own(tmp_path: Path, capsys: Output) -> None:
    """Both begin in the same second and train for 30 s."""
    put(tmp_path, **{"slurm-2000_0_out": printed(0, last=20) + DONE.format(at=at(30))})
    put(tmp_path, **{"slurm-2000_1_out": printed(0, last=20) + DONE.format(at=at(30))})
    assert jobs(tmp_path, capsys) == {"slurm-2000_0": 1, "slurm-2000_1": 1}


def own_lines(begin: int, seed: int, total: int = 40) -> str:
    """Return a complete run of an own loop with 10 s steps."""
    steps = "".join(f"{at(begin + 10 * n)} step {n}/{total} loss {seed + 3 / n:.4f}\n" for n in range(1, total + 1))
    return f"{at(begin)} Starting training\n{steps}{at(begin + 10 * total)} Training finished\n"


def test_complete_runs_in_files_of_one_folder_are_runs_not_epochs(tmp_path: Path) -> None:
    # Each file begins again at the first step after the total of the one before.
    put(tmp_path, seed1_log=own_lines(0, 1), seed2_log=own_lines(7200, 2), seed3_log=own_lines(14400, 3))
    runs = [analysed(tmp_path, run=str(number)) for number in (1, 2, 3)]
    assert [one.window.ns // 10**9 for one in runs] == [400, 400, 400]
    assert [one.job.attempts for one in runs] == [1, 1, 1]


def bar(seed: int, first: int = 0, last: int = 40) -> str:
    """Return the states of a progress bar without a timestamp, with 10 s steps."""
    states = "".join(
        f"\r{n * 5 // 2}%|##| {n}/40 [{n // 6:02d}:{n % 6}0<00:00, 10.00s/it, loss={seed + 3 / (n + 1):.3f}]"
        for n in range(first, last + 1)
    )
    return f"loading\n{states}\n"


def test_files_without_a_clock_that_were_copied_together_are_no_ranks(tmp_path: Path, capsys: Output) -> None:
    # They have one time of change, so that their steps seem to be at the same times.
    assert jobs(put(tmp_path / "runs", a1_out=bar(1), a2_out=bar(2)), capsys) == {"a1": 1, "a2": 1}
    assert jobs(put(tmp_path / "ranks", rank1_out=bar(1), rank2_out=bar(2)), capsys) == {"ranks": 1}
    assert jobs(put(tmp_path / "copies", a1_out=bar(1), a2_out=bar(1)), capsys) == {"copies": 1}


def untotaled(begin: int, first: int = 1, last: int = 40, end: str = "Done") -> str:
    """Return a run of an own loop with 10 s steps, without a total."""
    steps = "".join(
        f"{at(begin + 10 * (n - first + 1))} - step {n} | loss {3 / n:.4f}\n" for n in range(first, last + 1)
    )
    return f"{at(begin)} - Starting training\n{steps}{at(begin + 10 * (last - first + 1))} - {end}\n"


def test_rules_are_inferred_from_the_lines_of_one_run(tmp_path: Path, capsys: Output) -> None:
    # The end of each run is one end, whatever the number of runs, days apart or not.
    days = put(tmp_path / "days", night1_log=untotaled(0), night2_log=untotaled(86400))
    assert [analysed(days, run=run).job.ending for run in "12"] == ["clean", "clean"]
    assert [analysed(days, run=run).window.ns // 10**9 for run in "12"] == [400, 400]
    again = put(tmp_path / "again", one1_log=untotaled(0, end="saving"), one2_log=untotaled(7200, 31, 60))
    assert jobs(again, capsys) == {"again": 2}


def test_program_that_evaluates_next_to_training_starts_no_attempt(tmp_path: Path) -> None:
    # Its file sorts first, so that all of its lines precede the steps; their times are between these.
    batches = "".join(
        f"{at(100 * n)} - evaluating checkpoint {10 * n}\n"
        + "".join(f"{at(100 * n + i)} - eval batch {i}/20\n" for i in range(1, 21))
        for n in (1, 2, 3)
    )
    alone = analysed(put(tmp_path / "alone", train_log=untotaled(0)))
    both = analysed(put(tmp_path / "both", eval_log=batches, train_log=untotaled(0)))
    assert both.job.attempts == 1
    assert both.goodput.ns == alone.goodput.ns
