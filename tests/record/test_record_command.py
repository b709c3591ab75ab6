"""One event from a launcher script, the small wheel, and the callbacks, with stand-ins that call them as frameworks
do."""

# ruff: noqa: ARG002  # a stand-in has the signature of what it stands for

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import goodput_cli.record
from goodput_cli.record import Recorder
from goodput_cli.record.callbacks.jax import monitored
from goodput_cli.record.callbacks.torch import timed_loader
from goodput_cli.record.command import TYPES, main, record_event
from goodput_cli.record.lines import BY_RESILIENCY_NAME, EVENTS
from tests.record.record_programs import ROOT, environment, events, lines


@pytest.mark.parametrize("name", [*TYPES, *BY_RESILIENCY_NAME])
def test_every_event_can_be_recorded(tmp_path: Path, name: str) -> None:
    event = name if name in EVENTS else BY_RESILIENCY_NAME[name]
    needs_step = event in ("step_finished", "checkpoint_saved", "checkpoint_loaded")
    step = ["--step", "7"] if needs_step else []
    assert (
        main([name, "-j", "j", "--sink", "a.jsonl", "--sink", "b.jsonl", *step, "--time", "2026-01-01T00:00:00Z"]) == 0
    )
    (line,) = lines(Path("a.jsonl"))
    assert line == {
        "job_name": "j",
        "goodput_event": event,
        "goodput_time": 1767225600.0,
        **({"step": 7} if needs_step else {}),
    }
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["checkpoint_saved"], "checkpoint_saved requires --step N"),
        (["attempt"], "'attempt' is not an event; use one of heartbeat, scheduled"),
        (["finished", "--step", "3"], "finished does not take step"),
        (["finished", "--sink", "s3://b/x"], "cannot record to s3://"),
        (["finished", "--time", "noon"], "invalid read_time value: 'noon'"),
    ],
)
def test_invalid_events_are_reported(capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*arguments, "-j", "j"])
    assert sentence in capsys.readouterr().err


def test_line_that_no_sink_takes_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert not record_event("finished", job_name="j", sinks=["/dev/full"])
    assert "No space left on device" in capsys.readouterr().err


def test_job_name_comes_from_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NAME", "from-slurm")
    record_event("started", rank=3, time=1.5)
    assert lines(Path("goodput-logs/from-slurm.jsonl"))[0]["rank"] == 3


WHEEL = """
import sys
from goodput_record import Recorder
from goodput_record.drop_in.ml_goodput_measurement import goodput, goodput_elastic
from goodput_record.drop_in.resiliency.goodput_measure import logging
with Recorder("j", "log.jsonl", heartbeat=0).run():
    pass
assert "goodput_cli" not in sys.modules
try:
    goodput.GoodputCalculator("j", "l").get_job_goodput()
except ImportError as error:
    print(error)
"""


def test_small_wheel_works_alone(tmp_path: Path) -> None:
    for part in (
        "recorder",
        "goodput_cli/record",
        "goodput_cli/compat/drop_in",
    ):  # a build leaves files next to its sources
        shutil.copytree(ROOT / part, tmp_path / "sources" / part, ignore=shutil.ignore_patterns("__pycache__"))
    build = "from setuptools.build_meta import build_wheel; build_wheel('.')"  # the same build as pip's, without pip
    subprocess.run(
        [sys.executable, "-c", build], cwd=tmp_path / "sources" / "recorder", check=True, capture_output=True
    )
    (wheel,) = (tmp_path / "sources" / "recorder").glob("*.whl")
    shutil.unpack_archive(wheel, tmp_path / "site", "zip")
    alone = [sys.executable, "-S", "-c", "import sys; sys.path.insert(0, 'site')\n" + WHEEL]
    done = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True, check=True, env=environment(tmp_path))
    assert (
        done.stdout == "GoodputCalculator requires goodput-cli in addition to the recorder: "
        "pip install 'goodput-cli @ URL' with its URL\n"
    )
    assert events(tmp_path / "log.jsonl") == ["attempt", "job_start_time", "job_end_time"]
    command = [sys.executable, "-S", "-c", "import sys; sys.path.insert(0, 'site')\nimport runpy; sys.argv[1:] = "]
    command[-1] += "['job_started', '-j', 'j', '--sink', 'log.jsonl']\nrunpy.run_module('goodput_record')"
    subprocess.run(command, cwd=tmp_path, check=True, env=environment(tmp_path))
    assert events(tmp_path / "log.jsonl")[-1] == "started"


def test_wheel_has_every_package_and_one_version() -> None:
    wheel = tomllib.loads((ROOT / "recorder" / "pyproject.toml").read_text(encoding="utf-8"))
    places = {"goodput_record": "goodput_cli/record", "goodput_record.drop_in": "goodput_cli/compat/drop_in"}
    packages = {
        ".".join([name, *path.parent.relative_to(ROOT / folder).parts])
        for name, folder in places.items()
        for path in (ROOT / folder).rglob("__init__.py")
    }
    assert sorted(packages) == wheel["tool"]["setuptools"]["packages"]
    assert goodput_cli.record.__version__ == goodput_cli.__version__


def test_waiting_for_batches_is_data_loading(tmp_path: Path) -> None:
    recorder = Recorder("j", tmp_path / "log.jsonl", heartbeat=0)
    loader = timed_loader([1, 2], recorder)
    assert (list(loader), len(loader), loader.count(1)) == ([1, 2], 2, 1)
    assert events(tmp_path / "log.jsonl")[2:] == ["data_loading_start_time", "data_loading_end_time"] * 3


class Manager:
    """A checkpoint manager that saves in the background every second step."""

    directory = "gs://b/c"

    def __init__(self) -> None:
        self.saving = False

    def save(self, step: int, args: Any = None) -> bool:
        self.saving = step % 2 == 0
        return self.saving

    def is_saving_in_progress(self) -> bool:
        return self.saving

    def latest_step(self) -> int:
        return 4

    def restore(self, step: int | None, args: Any = None) -> str:
        return "state"

    def wait_until_finished(self) -> None:
        self.saving = False

    def close(self) -> None:
        self.saving = False


def test_checkpoint_manager_is_recorded(tmp_path: Path) -> None:
    manager = monitored(Manager(), Recorder("j", tmp_path / "log.jsonl", heartbeat=0))
    assert manager.restore() == "state"
    assert [manager.save(step, args=None) for step in range(5)] == [True, False, True, False, True]
    manager.wait_until_finished()
    manager.close()
    found = lines(tmp_path / "log.jsonl")[2:]
    assert [(line.get("event_type") or line["goodput_event"], line["step"]) for line in found] == [
        *(("restore", 4), ("checkpoint_loaded", 4)),
        *(("save", 0), ("checkpoint_saved", 0), ("save", 2), ("checkpoint_saved", 2)),
        *(("save", 4), ("checkpoint_saved", 4)),
    ]


@pytest.fixture
def replacements(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install frameworks with only the base class of their callbacks."""
    for name, base in (("lightning.pytorch", "Callback"), ("transformers", "TrainerCallback")):
        module = ModuleType(name)
        setattr(module, base, type(base, (), {}))
        monkeypatch.setitem(sys.modules, name.partition(".")[0], ModuleType(name.partition(".")[0]))
        monkeypatch.setitem(sys.modules, name, module)
    yield
    for name in ("lightning", "transformers"):
        sys.modules.pop(f"goodput_cli.record.callbacks.{name}", None)


def callback(name: str, recorder: Recorder) -> Any:
    return importlib.import_module(f"goodput_cli.record.callbacks.{name}").GoodputCallback(recorder)


class Trainer:
    """Caller of hooks in Lightning's order."""

    def __init__(self) -> None:
        self.global_rank, self.world_size, self.global_step, self.sanity_checking = 0, 1, 0, False
        loaded = {"global_step": 7}
        self.strategy = SimpleNamespace(checkpoint_io=SimpleNamespace(), load_checkpoint=lambda _: loaded)
        self.resumed_from = ""
        self.saved: list[str] = []

    def save_checkpoint(self, filepath: str, weights_only: bool = False) -> None:
        self.saved.append(filepath)

    def fit(self, hooks: Any, batches: int) -> None:
        hooks.setup(self, None, "fit")
        if self.resumed_from:
            hooks.on_load_checkpoint(self, None, self.strategy.load_checkpoint(self.resumed_from))
        self.sanity_checking = True
        hooks.on_sanity_check_start(self, None)
        hooks.on_validation_start(self, None)
        hooks.on_validation_end(self, None)
        hooks.on_sanity_check_end(self, None)
        self.sanity_checking = False
        hooks.on_train_start(self, None)
        try:
            for batch in range(batches):
                hooks.on_train_batch_start(self, None, None, batch)
                if batch == 5:
                    raise ValueError
                self.global_step += batch % 2  # two batches are a step
        except ValueError as error:
            hooks.on_exception(self, None, error)
            hooks.teardown(self, None, "fit")
            raise
        hooks.on_validation_start(self, None)
        hooks.on_validation_end(self, None)
        self.save_checkpoint("last.ckpt")
        hooks.on_fit_end(self, None)
        hooks.teardown(self, None, "fit")


@pytest.mark.usefixtures("replacements")
def test_lightning_hooks_record_a_run(tmp_path: Path) -> None:
    trainer = Trainer()
    trainer.fit(callback("lightning", Recorder("j", tmp_path / "log.jsonl", heartbeat=0)), 4)
    both = ["custom_badput_event_start_time", "custom_badput_event_end_time"]
    assert events(tmp_path / "log.jsonl") == [
        *("attempt", "job_start_time", "training_prep_start_time", *both, "training_prep_end_time"),
        *("step 0", "step 1", *both, "save", "checkpoint_saved", "job_end_time"),
    ]
    assert trainer.saved == ["last.ckpt"]
    assert trainer.save_checkpoint.__name__ == "save_checkpoint"


@pytest.mark.usefixtures("replacements")
def test_lightning_restore_is_recorded(tmp_path: Path) -> None:
    trainer = Trainer()
    trainer.resumed_from = "saved/last.ckpt"
    load = trainer.strategy.load_checkpoint
    trainer.fit(callback("lightning", Recorder("j", tmp_path / "log.jsonl", heartbeat=0)), 2)
    assert events(tmp_path / "log.jsonl")[2:5] == ["training_prep_start_time", "restore", "checkpoint_loaded"]
    (restore,) = [line for line in lines(tmp_path / "log.jsonl") if line.get("event_type") == "restore"]
    assert (restore["step"], restore["directory"]) == (7, "saved/last.ckpt")
    assert trainer.strategy.load_checkpoint is load


@pytest.mark.usefixtures("replacements")
def test_transformers_restore_is_recorded(tmp_path: Path) -> None:
    class Loader:
        """Reader of batches in the order of `Trainer`."""

        def __init__(self, hooks: Any) -> None:
            self.callback_handler = SimpleNamespace(callbacks=[hooks])

        def _load_from_checkpoint(self, folder: str, model: object = None) -> str:
            return folder

        def _load_optimizer_and_scheduler(self, folder: str | None) -> None: ...

    vars(sys.modules["transformers"])["Trainer"] = Loader
    hooks = callback("transformers", Recorder("j", tmp_path / "log.jsonl", heartbeat=0))
    args, control = SimpleNamespace(process_index=0, world_size=1, output_dir="out"), SimpleNamespace()
    hooks.on_init_end(args, SimpleNamespace(global_step=0), control)
    loader = Loader(hooks)
    assert loader._load_from_checkpoint("out/checkpoint-500", model=None) == "out/checkpoint-500"
    loader._load_optimizer_and_scheduler("out/checkpoint-500")
    loader._load_optimizer_and_scheduler(None)
    hooks.on_train_begin(args, SimpleNamespace(global_step=500), control)
    both = ["restore", "checkpoint_loaded"]
    assert events(tmp_path / "log.jsonl")[2:] == ["training_prep_start_time", *both, *both, "training_prep_end_time"]
    restored = [line for line in lines(tmp_path / "log.jsonl") if line.get("event_type") == "restore"]
    assert {(line["step"], line["directory"]) for line in restored} == {(500, "out/checkpoint-500")}


@pytest.mark.usefixtures("replacements")
def test_lightning_hooks_record_a_crash(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        Trainer().fit(callback("lightning", Recorder("j", tmp_path / "log.jsonl", heartbeat=0)), 9)
    assert events(tmp_path / "log.jsonl")[-1] == "crashed"


@pytest.mark.usefixtures("replacements")
def test_transformers_hooks_record_a_run(tmp_path: Path) -> None:
    hooks = callback("transformers", Recorder("j", tmp_path / "log.jsonl", heartbeat=0))
    args = SimpleNamespace(process_index=0, world_size=1, output_dir="out")
    state, control = SimpleNamespace(global_step=2), SimpleNamespace(should_save=False, should_evaluate=False)
    hooks.on_init_end(args, state, control)
    hooks.on_train_begin(args, state, control)
    for evaluate, save in ((False, True), (True, True), (True, False)):
        hooks.on_step_begin(args, state, control)
        state.global_step += 1
        control.should_evaluate, control.should_save = evaluate, save
        hooks.on_step_end(args, state, control, model=None)
        if evaluate:
            hooks.on_evaluate(args, state, control)
        if save:
            hooks.on_save(args, state, control)
    hooks.on_train_end(args, state, control)
    both = ["custom_badput_event_start_time", "custom_badput_event_end_time"]
    saved = ["save", "checkpoint_saved"]
    assert events(tmp_path / "log.jsonl") == [
        *("attempt", "job_start_time", "training_prep_start_time", "checkpoint_loaded", "training_prep_end_time"),
        *("step 2", *saved, "step 3", *both, *saved, "step 4", *both, "job_end_time"),
    ]
    found = [line["directory"] for line in lines(tmp_path / "log.jsonl") if "directory" in line]
    assert found == ["out/checkpoint-3", "out/checkpoint-4"]


@pytest.mark.parametrize("name", ["lightning", "transformers"])
def test_missing_framework_is_reported(name: str) -> None:
    with pytest.raises(ImportError, match=f"pip install {name}"):
        importlib.import_module(f"goodput_cli.record.callbacks.{name}")
