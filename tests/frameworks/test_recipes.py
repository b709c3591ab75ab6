"""The recipes of docs/record.md with the frameworks themselves: FSDP in two processes as Slurm starts them, Orbax."""

from __future__ import annotations

import socket
from pathlib import Path

import goodput_cli
from tests.record.record_programs import events, lines, run, start, word

FSDP = """
import torch, torch.distributed
from torch.distributed.fsdp import fully_shard
from goodput_cli.record import Recorder
from goodput_cli.record.callbacks.torch import timed_loader

recorder = Recorder("fsdp", "log.jsonl", heartbeat=0)
with recorder.run():
    with recorder.phase("accelerator_init"):
        torch.distributed.init_process_group("gloo", rank=int(os.environ["SLURM_PROCID"]), world_size=2)
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    model = torch.nn.Linear(4, 4)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = [torch.randn(2, 4) for _ in range(6)]
    for step, batch in enumerate(timed_loader(data, recorder)):
        with recorder.step(step):
            model(batch).sum().backward()
            optimizer.step()
        if step == 3:
            with recorder.checkpoint_save(step, "saved"):
                torch.save(model.state_dict(), f"saved.{os.environ['SLURM_PROCID']}")
    torch.distributed.destroy_process_group()
"""


def test_fsdp_on_slurm_recipe_works(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "SLURM_NTASKS": "2", "SLURM_JOB_NAME": "fsdp"}
    pair = [start(tmp_path, FSDP, packages=True, **place, SLURM_PROCID=str(rank)) for rank in range(2)]
    for process in pair:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    found = events(tmp_path / "log.jsonl")
    assert [name for name in found if name.startswith("step ")] == [f"step {step}" for step in range(6)]
    assert (found.count("save"), found.count("attempt"), found[-1]) == (1, 1, "job_end_time")
    first = lines(tmp_path / "log.jsonl")[0]
    assert (first["rank"], first["world_size"]) == (0, 2)
    analysis = goodput_cli.analyze(tmp_path / "log.jsonl")
    assert (analysis.job.attempts, analysis.job.last_step, analysis.job.ending) == (1, 5, "clean")


ORBAX = """
import numpy as np
import orbax.checkpoint as ocp
from goodput_cli.record import Recorder
from goodput_cli.record.callbacks.jax import monitored

recorder = Recorder("orbax", "log.jsonl", heartbeat=0)
options = ocp.CheckpointManagerOptions(save_interval_steps=2, max_to_keep=2)
with recorder.run():
    with monitored(ocp.CheckpointManager(os.path.abspath("saved"), options=options), recorder) as manager:
        state = {"weights": np.arange(8.0)}
        for step in recorder.steps(range(5)):
            manager.save(step, args=ocp.args.StandardSave(state))
        manager.wait_until_finished()
        restored = manager.restore(None, args=ocp.args.StandardRestore(state))
        assert (restored["weights"] == state["weights"]).all()
"""


def test_orbax_checkpoint_manager_is_recorded(tmp_path: Path) -> None:
    run(tmp_path, ORBAX, packages=True, JAX_PLATFORMS="cpu")
    found = lines(tmp_path / "log.jsonl")
    assert [line["step"] for line in found if word(line) == "save"] == [0, 2, 4]
    assert [line["step"] for line in found if word(line) == "checkpoint_saved"] == [0, 2, 4]
    (restore,) = [line for line in found if word(line) == "restore"]
    assert (restore["step"], restore["directory"]) == (4, str(tmp_path / "saved"))
    for line in found:
        if word(line) == "save":
            assert line["checkpointer_blocking_duration_secs"] > 0
            assert line["synchronous"] is False
    analysis = goodput_cli.analyze(tmp_path / "log.jsonl")
    assert (analysis.saves is not None, analysis.job.last_step) == (True, 4)
