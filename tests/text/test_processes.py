"""Which lines of text are one process, and which processes are one attempt (docs/formats.md)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.phrases import all_headline_warnings
from goodput_cli.errors import NotEnoughData, UsageError
from goodput_cli.vocabulary.text import iso
from tests.text.support import analysed, codes, seconds, written
from tests.text.test_progress_bars import clock, state

STARTED = "[INFO|trainer.py:1143] 2026-03-01 10:30:55,{ms} >> ***** Running training *****\n"
NODES = 5
RUNTIME = "{'train_runtime': 872.0, 'train_samples_per_second': 1.1, 'epoch': 1.0}\n"


def bar_of_a_node(node: int) -> str:
    """Return a bar of four steps in 872 s, and the node's final line, 14 min 32 s after its start."""
    ends = (225 + node % 2, 435, 650, 872)
    text = state(0, 4, 0) + " ?it/s]"
    for done, end in enumerate(ends[:-1], 1):
        text += state(done, 4, end) + f" {end // done}.00s/it]"
    return f"{text}\r100%|##########| 4/4 [{clock(ends[-1])}<00:00, 218.00s/it]" + (
        f"[INFO|trainer.py:1339] 2026-03-01 10:45:27,{100 + node} >> \n"
    )


def test_bars_too_long_in_sequence_are_of_several_nodes(tmp_path: Path) -> None:
    """Five nodes print into one file, the bar of one after that of another: in sequence they would take 73 minutes, but
    the lines around them show 14 min 32 s."""
    starts = "".join(STARTED.format(ms=249 + node) for node in range(NODES))
    bars = "".join(bar_of_a_node(node) for node in range(NODES))
    analysis = analysed(written(tmp_path / "run", a_out=starts + bars + RUNTIME * NODES), timezone="UTC")
    assert (analysis.job.attempts, len(analysis.disruptions), analysis.job.kept_steps) == (1, 0, 4)
    assert analysis.job.ending == "clean"
    assert seconds(analysis)["productive"] > 871


def test_bars_that_fit_in_sequence_are_successive_processes(tmp_path: Path) -> None:
    lines = [
        STARTED.format(ms=249) + state(0, 4, 0) + " ?it/s]" + state(1, 4, 225) + " 225.00s/it]" + state(2, 4, 435),
        " 210.00s/it]\n",
        "[INFO|trainer.py:1143] 2026-03-01 10:45:55,249 >> ***** Running training *****\n",
        bar_of_a_node(0).replace("10:45:27", "11:00:27"),
        RUNTIME,
    ]
    analysis = analysed(written(tmp_path / "run", a_out="".join(lines)), timezone="UTC")
    assert (analysis.job.attempts, len(analysis.disruptions), analysis.job.kept_steps) == (2, 1, 4)


def stamped(second: int, text: str) -> str:
    return f"[2026-03-01 20:{49 + second // 60:02d}:{second % 60:02d},066] [INFO] {text}\n"


STEPS = "".join(stamped(77 + step, f"[logging.py:107:log_dist] [Rank 0] step={step}, skipped=0, lr=[1e-05]")
                for step in range(1, 56))  # fmt: skip
NO_STEP_YET = stamped(77, "[logging.py:107:log_dist] [Rank 0] step=0, skipped=0, lr=[1e-05]")


def test_record_of_step_0_starts_at_the_first_dated_line(tmp_path: Path) -> None:
    """77 s of loading, a record of 0 steps, 55 steps in 55 s; no process start is logged."""
    log = stamped(0, "[real_accelerator.py:254:get_accelerator] Setting ds_accelerator to cuda") + NO_STEP_YET + STEPS
    analysis = analysed(written(tmp_path / "run", a_out=log), timezone="UTC")
    assert (analysis.job.attempts, len(analysis.disruptions), analysis.job.kept_steps) == (1, 0, 55)
    assert seconds(analysis) == {"productive": 55, "program_startup": 77}


def test_record_of_step_0_is_not_a_second_start(tmp_path: Path) -> None:
    """A launcher logs the start of its process; a minute later the engine has completed 0 steps."""
    spawned = stamped(0, "[launch.py:256:main] process 3668201 spawned with command: ['python', '-u', 'train.py']")
    analysis = analysed(written(tmp_path / "run", a_out=spawned + NO_STEP_YET + STEPS), timezone="UTC")
    assert (analysis.job.attempts, len(analysis.disruptions), analysis.job.kept_steps) == (1, 0, 55)
    assert seconds(analysis) == {"productive": 55, "program_startup": 77}


def test_record_of_step_0_after_steps_is_a_start(tmp_path: Path) -> None:
    again = STEPS.replace("20:51", "21:51").replace("20:50", "21:50")
    log = NO_STEP_YET + STEPS + NO_STEP_YET.replace("20:50", "21:50") + again
    analysis = analysed(written(tmp_path / "run", a_out=log), timezone="UTC")
    assert (analysis.job.attempts, len(analysis.disruptions)) == (2, 1)


TIMES_OF_DAY = """\
name = "loop"

[[rule]]
event = "start"
line = "Starting training on {_}"

[[rule]]
event = "step"
line = "step {step:int}/60 loss {_} time {each:float}s"

[[rule]]
event = "resume"
line = "Resuming from checkpoint {_} at step {step:int}"
"""
LIVES = """\
[23:59:13] Starting training on cpu, 60 steps
[23:59:18] step 5/60 loss 0.29 time 1.000s
[23:59:23] step 10/60 loss 1.24 time 1.000s
Traceback (most recent call last):
  File "loop.py", line 62, in <module>
ValueError: expected sequence of length 512, got 511
[23:59:58] Starting training on cpu, 60 steps
[23:59:59] Resuming from checkpoint ckpt/step_5.pt at step 5
[00:00:04] step 10/60 loss 0.29 time 1.000s
[00:00:54] step 60/60 loss 1.90 time 1.000s
"""
CHANGED = 1_772_323_320  # 2026-03-01 00:02 UTC


def of_times_of_day(folder: Path, text: str) -> tuple[Path, Path]:
    log = written(folder, a_log=text) / "a.log"
    os.utime(log, (CHANGED, CHANGED))
    mapping = folder / "loop.toml"
    mapping.write_text(TIMES_OF_DAY)
    return log, mapping


def test_times_of_day_are_on_the_modification_day(tmp_path: Path) -> None:
    """Two processes around midnight with 35 s without training: the fall to 00:00:04 is a new day."""
    log, mapping = of_times_of_day(tmp_path, LIVES)
    analysis = analysed(log, mapping=mapping, timezone="UTC")
    assert (analysis.job.attempts, analysis.job.kept_steps) == (2, 60)
    assert iso(analysis.window.start_ns) == "2026-02-28T23:59:13Z"
    assert iso(analysis.window.end_ns) == "2026-03-01T00:00:54Z"
    (lost,) = analysis.disruptions
    assert (lost.cause, lost.steps_lost) == ("python_error", 5)
    found = seconds(analysis)
    assert (found["productive"], found["infrastructure_recovery_from_disruption"]) == (60, 35)
    assert any("no line has a date" in one for one in all_headline_warnings(analysis))


def test_stated_day_is_not_reported_as_assumed(tmp_path: Path) -> None:
    log, mapping = of_times_of_day(tmp_path, "2026-02-03 23:58:00 launcher: begin\n" + LIVES)
    for analysis in (
        analysed(log, mapping=mapping, timezone="UTC"),
        analysed(of_times_of_day(tmp_path, LIVES)[0], mapping=mapping, timezone="UTC", clock_start="2026-02-04"),
    ):
        assert "day_assumed" not in codes(analysis)
        assert iso(analysis.window.end_ns) == "2026-02-04T00:00:54Z"
        assert seconds(analysis)["productive"] == 60


def test_day_without_a_year_is_in_the_latest_year(tmp_path: Path) -> None:
    """An agent's lines have day but no year, as glog writes them: the file's modification time determines it for
    both."""
    agent = "W0228 23:58:16.508000 11329 torch/distributed/run.py:982] Setting OMP_NUM_THREADS\n"
    log, mapping = of_times_of_day(tmp_path, agent + LIVES)
    analysis = analysed(log, mapping=mapping, timezone="UTC")
    assert iso(analysis.window.end_ns) == "2026-03-01T00:00:54Z"
    assert seconds(analysis)["productive"] == 60


def test_zone_applies_to_times_of_day(tmp_path: Path) -> None:
    """The file was modified at 01:02 in Berlin."""
    log, mapping = of_times_of_day(tmp_path, LIVES)
    analysis = analysed(log, mapping=mapping, timezone="Europe/Berlin")
    assert iso(analysis.window.end_ns) == "2026-02-28T23:00:54Z"


def test_a_mapping_reads_times_without_a_date(tmp_path: Path) -> None:
    log, mapping = of_times_of_day(
        tmp_path, "".join(f"<{22 + n // 6:02d}h{n % 6}0m00> done {n}\n" for n in range(1, 31))
    )
    mapping.write_text(
        'name = "loop"\n[time]\nformat = "<%Hh%Mm%S>"\n[[rule]]\nevent = "step"\nline = "done {step:int}"\n'
        '[[sample]]\nline = "<22h10m00> done 1"\ngives = { event = "step", step = 1, time = 22:10:00 }\n'
    )
    log.write_text("".join(f"<{(22 + n // 6) % 24:02d}h{n % 6}0m00> done {n}\n" for n in range(1, 31)))
    os.utime(log, (CHANGED, CHANGED))
    analysis = analysed(log, mapping=mapping, timezone="UTC")
    assert seconds(analysis) == {"productive": 29 * 600}
    assert iso(analysis.window.end_ns) == "2026-02-28T03:00:00Z"


def test_shared_line_does_not_identify_a_program(tmp_path: Path) -> None:
    """torchtitan's last line is also Hugging Face's, and here no line is only torchtitan's."""
    thanks = "Training completed. Do not forget to share your model on huggingface.co/models =)\n"
    analysis = analysed(written(tmp_path / "run", a_out=STEPS + thanks), timezone="UTC")
    assert analysis.job.ending == "not_logged"
    assert analysis.job.formats == ("deepspeed",)
    own = "[titan] 2026-03-01 10:00:{second:02d},000 - root - INFO - step: {step}  loss: 8.1  tps: 5,815\n"
    lines = "".join(own.format(second=2 * step, step=step) for step in range(1, 11))
    analysis = analysed(written(tmp_path / "titan", a_out=lines + thanks), timezone="UTC")
    assert (analysis.job.ending, analysis.job.kept_steps) == ("clean", 9)


OWN_LOOP = "".join(f"2026-03-01 10:00:{second:02d},000 INFO | rank {{rank}} | step {second} | loss 0.1\n"
                   for second in range(5, 15))  # fmt: skip
AGENT = "".join(
    f"E0301 {time}.066000 11329 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) "
    "local_rank: 1 (pid: 11764) of binary: /data/venv/bin/python\n"
    for time in ("10:01:04", "10:02:20")
)


def torchrun(folder: Path) -> Path:
    """Write `torchrun --log-dir logs` of two ranks in two launches, and the agent's output next to it."""
    (folder / "launcher.log").write_text(AGENT)
    for launch, minute in ((0, "10:00"), (1, "10:02")):
        for rank in (0, 1):
            kept = folder / "logs" / "fe434b09_6gwc08dz" / f"attempt_{launch}" / str(rank)
            kept.mkdir(parents=True)
            (kept / "stderr.log").write_text(OWN_LOOP.format(rank=rank).replace("10:00", minute))
            (kept / "stdout.log").write_text("")
    return folder


def test_ranks_and_launches_of_torchrun_are_one_job(tmp_path: Path) -> None:
    mapping = tmp_path / "ddp.toml"
    mapping.write_text('name = "ddp"\n[[rule]]\nevent = "step"\nline = "| rank {rank} | step {step:int} | loss {_}"\n')
    (tmp_path / "job").mkdir()
    analysis = analysed(torchrun(tmp_path / "job"), mapping=mapping, timezone="UTC", year=2026)
    assert (analysis.job.name, analysis.job.attempts, len(analysis.disruptions)) == ("job", 2, 1)
    assert analysis.job.last_step == 14


def test_unread_steps_are_not_counted_as_zero(tmp_path: Path) -> None:
    """The agent's lines make a job, but its ranks print steps in an unknown format: no share is known."""
    folder = torchrun(tmp_path)
    analysis = analysed(folder, timezone="UTC", year=2026, draft=False)
    assert analysis.goodput_percent is None
    assert analysis.unavailable_reason is not None
    assert "looks like a step, but the format is unknown" in analysis.unavailable_reason
    assert "attempt_0/0/stderr.log:1" in analysis.unavailable_reason
    drafted = analysed(folder, timezone="UTC", year=2026)  # Each launch is an attempt, even if steps continue.
    assert (drafted.job.attempts, drafted.job.last_step) == (2, 14)


def test_crash_line_does_not_prevent_a_draft(tmp_path: Path) -> None:
    log = (
        OWN_LOOP.format(rank=0)
        + 'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: expected 512\n'
    )
    with pytest.raises(NotEnoughData, match=r"a\.log:1 looks like a step, but the format is unknown.*check --suggest"):
        analysed(written(tmp_path / "run", a_log=log), draft=False)
    assert analysed(written(tmp_path / "run", a_log=log)).inferred_rules is not None


def titan(minute: int, first: int = 1) -> str:
    """Return twelve steps of 4 s."""
    return "".join(
        f"[titan] 2026-03-01 10:{minute:02d}:{4 * count:02d},000 - root - INFO - step: {first + count}  loss: 8.1  "
        "tps: 5,815\n"
        for count in range(12)
    )


def in_folders(top: Path, **logs: str) -> Path:
    """Write each log as `train.log` in its own folder."""
    for folder, text in logs.items():
        (top / folder).mkdir(parents=True)
        (top / folder / "train.log").write_text(text)
    return top


def test_files_with_equal_names_are_named_by_folder(tmp_path: Path) -> None:
    logs = str(in_folders(tmp_path / "logs", alpha=titan(0), beta=titan(20), gamma=titan(2)))
    names = ("alpha", "beta", "gamma")
    assert {row.name for row in goodput_cli.jobs(logs, timezone="UTC").jobs} == {*names}
    fleet = goodput_cli.fleet_report(logs, timezone="UTC")
    assert {run.job for run in fleet.runs} == {*names}
    assert all(run.goodput_percent == 100 for run in fleet.runs)
    with pytest.raises(UsageError, match="'alpha', 'beta', 'gamma'"):
        analysed(logs, timezone="UTC")
    assert analysed(logs, job_name="beta", timezone="UTC").job.kept_steps == 11


def test_launches_and_nodes_in_numbered_folders_are_one_job(tmp_path: Path) -> None:
    launches = in_folders(tmp_path / "llm", attempt_0=titan(0), attempt_1=titan(3, first=9))
    analysis = analysed(launches, timezone="UTC")
    assert (analysis.job.name, analysis.job.attempts) == ("train", 2)
    (row,) = goodput_cli.jobs(str(launches), timezone="UTC").jobs
    assert (row.name, row.attempts) == ("train", 2)


def test_nodes_with_the_same_steps_are_one_job(tmp_path: Path) -> None:
    analysis = analysed(in_folders(tmp_path / "llm", east=titan(0), west=titan(0)), timezone="UTC")
    assert (analysis.job.attempts, analysis.job.kept_steps) == (1, 11)


def test_growing_log_is_read_like_a_complete_one(tmp_path: Path) -> None:
    """An ambiguous line is not dropped for good while the log grows; nor is a day fixed."""
    log = tmp_path / "train.log"
    start = "[titan] 2026-03-01 09:59:30,000 - root - INFO - Starting job: Llama 3 debug training\n"
    log.write_text(start + stamped(0, "[Rank 0] step=1, skipped=0, lr=[1e-05]").replace("20:49", "09:59"))
    updates = goodput_cli.watch(str(log), timezone="UTC", interval=0.1, as_of="2026-03-01T10:10")
    next(updates)
    with log.open("a") as file:
        file.write(titan(0))
    grown = next(update for update in updates if update.analysis is not None and update.analysis.job.kept_steps > 5)
    whole = analysed(log, timezone="UTC", as_of="2026-03-01T10:10")
    assert grown.analysis is not None
    assert seconds(grown.analysis) == seconds(whole)
    assert grown.analysis.job.attempts == whole.job.attempts


TITAN = "[titan] 2026-03-01 10:{minute:02}:00,000 - root - INFO - {words}\n"
FELL = 'Traceback (most recent call last):\n  File "train.py", line 8, in main\nOSError: [Errno 28] No space left\n'
FAILED = (
    "E0301 10:{minute:02}:30.000000 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) "
    "local_rank: 0 (pid: 9) of binary: python\n"
)


def titan_starts(between: str) -> str:
    """Return three starts a minute apart, the given lines after the first two, and ten steps after the third."""
    starts = [TITAN.format(minute=minute, words="Starting job: plum") for minute in range(3)]
    steps = "".join(TITAN.format(minute=3 + at, words=f"step: {at:2}  loss: 8.1  tps: 5,815") for at in range(1, 11))
    return starts[0] + between.format(minute=0) + starts[1] + between.format(minute=1) + starts[2] + steps


@pytest.mark.parametrize(("between", "attempts"), [("", 1), (FAILED, 3), (FELL, 3)])
def test_each_start_after_an_end_is_a_new_attempt(tmp_path: Path, between: str, attempts: int) -> None:
    """Starts in sequence may be those of several ranks, but after a death they are of another process."""
    analysis = analysed(written(tmp_path / "run", a_log=titan_starts(between)), timezone="UTC")
    assert (analysis.job.attempts, analysis.job.disruptions) == (attempts, attempts - 1)


def test_survived_exception_ends_no_start(tmp_path: Path) -> None:
    text = titan_starts(FELL + TITAN.format(minute=0, words="falling back to the other disk"))
    assert analysed(written(tmp_path / "run", a_log=text), timezone="UTC").job.attempts == 1
