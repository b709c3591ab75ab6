"""One process of a small training that logs to a real tracker and records its actions by its own clock.

python train.py wandb|mlflow FOLDER STEPS [END STEP]

END is `raise` (an exception after STEP) or `kill` (SIGKILL to itself). It resumes from the last multiple of ten that
was saved in FOLDER. The record is FOLDER/truth.jsonl: one JSON object per line, with epoch seconds.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

_STEP, _SAVE, _EVERY = 0.05, 0.1, 10


def main(kind: str, folder: Path, steps: int, ending: str = "", at: int = -1) -> None:
    def note(what: str, **more: object) -> None:
        with open(folder / "truth.jsonl", "a") as truth:
            truth.write(json.dumps({"what": what, "time": time.time(), **more}) + "\n")

    note("begin", pid=os.getpid())
    saved = folder / "saved"
    first = int(saved.read_text()) if saved.exists() else 0
    log, finish = _of_wandb(folder) if kind == "wandb" else _of_mlflow(folder, kind)
    note("up", step=first)
    for step in range(first, steps):
        time.sleep(_STEP)
        note("step", step=step)
        log(step, 3.0 / (step + 1))
        if step % _EVERY == _EVERY - 1:
            time.sleep(_SAVE)
            saved.write_text(str(step + 1))
            note("save", step=step)
        if step == at and ending == "kill":
            note("end", how="kill")
            os.kill(os.getpid(), signal.SIGKILL)
        if step == at:
            note("end", how="raise")
            raise RuntimeError("a fault")
    note("end", how="clean")
    finish()


def _of_wandb(folder: Path) -> tuple[Callable[[int, float], None], Callable[[], object]]:
    import wandb  # type: ignore[import-not-found,unused-ignore]

    run = wandb.init(project="fixture", id="abc12345", resume="allow", dir=str(folder), mode="offline")

    def log(step: int, loss: float) -> None:
        print(f"iter {step}: loss {loss:.4f}, time {_STEP * 1000:.2f}ms", flush=True)
        run.log({"train/loss": loss, "train/global_step": step}, step=step)

    return log, run.finish


def _of_mlflow(folder: Path, kind: str) -> tuple[Callable[[int, float], None], Callable[[], object]]:
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow  # type: ignore[import-not-found,unused-ignore]

    store = f"sqlite:///{folder}/mlflow.db" if kind == "mlflow-sqlite" else (folder / "mlruns").as_uri()
    mlflow.set_tracking_uri(store)
    mlflow.set_experiment("fixture")
    known = folder / "run_id"
    run = mlflow.start_run(run_id=known.read_text() if known.exists() else None, run_name="small")
    known.write_text(run.info.run_id)

    def log(step: int, loss: float) -> None:
        mlflow.log_metric("loss", loss, step=step)
        if step % _EVERY == _EVERY - 1:
            mlflow.log_metric("val_loss", loss, step=step)

    return log, mlflow.end_run


if __name__ == "__main__":
    ending = (sys.argv[4], int(sys.argv[5])) if len(sys.argv) > 4 else ("", -1)
    main(sys.argv[1], Path(sys.argv[2]).resolve(), int(sys.argv[3]), *ending)
