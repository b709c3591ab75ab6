"""Other lines of programs with a shipped mapping."""

from __future__ import annotations

from pathlib import Path

from tests.mappings.test_mapped_formats import titan
from tests.text.support import analysed, seconds, written


def test_torchtitan_validation_is_not_a_step(tmp_path: Path) -> None:
    """A validation line also contains `step` and `tps` but is not a step: the job has one attempt."""
    log = "".join((
        titan(1, "Starting job: Llama 3 8B training"),
        *(titan(10 + 2 * n, f"step: {n + 1:2}  loss:  8.1322  memory: 39.0GiB(41.0%)  tps: 5,815") for n in range(3)),
        titan(20, "validate step:  3  loss:  7.9120  memory: 39.0GiB(41.0%)  tps: 9,100"),
        titan(22, "step:  4  loss:  8.1  memory: 39.0GiB(41.0%)  tps: 5,815"),
    ))  # fmt: skip
    analysis = analysed(written(tmp_path / "titan", a_log=log))
    assert (analysis.job.attempts, analysis.job.kept_steps) == (1, 4)
    assert seconds(analysis) == {"productive": 8, "EVAL_STEP": 6, "program_startup": 7}


def test_deepspeed_pipelines_print_no_time(tmp_path: Path) -> None:
    log = "".join(f"steps: {n} loss: 2.{n} iter time (s): 0.500 samples/sec: 256.000\n" for n in (10, 20, 30))
    found = seconds(analysed(written(tmp_path / "ds", a_log="2026-03-01 10:00:00,000 up\n" + log)))
    assert found["productive"] == 10


def dlrover(second: int, name: str, kind: str, content: str = "{}") -> str:
    return f"[2026-03-01T10:00:{second:02d}.000000] [426] [22b7ca89] [AtorchTrainerV2] [{name}] [{kind}] {content}\n"


def test_dlrover_checkpoint_load_is_read(tmp_path: Path) -> None:
    log = "".join((
        dlrover(0, "#start", "INSTANT"),
        dlrover(2, "#load_ckpt", "BEGIN"),
        dlrover(9, "#load_ckpt", "END"),
        *(dlrover(15 + 5 * n, "#step", "END", f'{{"global_step": {n}}}') for n in range(1, 5)),
    ))  # fmt: skip
    found = seconds(analysed(written(tmp_path / "dlrover", events__0_log=log)))
    assert found == {"productive": 20, "program_startup": 8, "unproductive_checkpoint_restore_time": 7}
