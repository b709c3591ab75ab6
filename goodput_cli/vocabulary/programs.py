"""What `goodput help` explains: the words of reports and documents, and the supported programs with the command for
their logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from goodput_cli.vocabulary.option import TomlRows


class Program(NamedTuple):
    """One way to produce a log."""

    name: str
    """The program that writes it."""
    formats: tuple[str, ...]
    """Its format names in answers."""
    command: str
    """The command to type."""
    unknown: str
    """Information that such a log lacks; "" if it is complete."""


PROGRAMS = (
    Program("MaxText, ml-goodput-measurement", ("recorder", "orbax", "maxtext"), "goodput run.jsonl", ""),
    Program("goodput's own recorder", ("goodput", "native"), "goodput run.jsonl", ""),
    Program("the resiliency library", ("resiliency",), "goodput run.jsonl", "step times"),
    Program("ML Diagnostics", ("mldiagnostics",), "goodput cloud-logging://PROJECT/LOG -j NAME", "saves, clean ends"),
    Program("Megatron-LM", ("megatron", "megatron-progress"), "goodput slurm-logs/", "data loading"),
    Program("NeMo 2", ("nemo2",), "goodput logs/", ""),
    Program("torchtitan", ("torchtitan",), "goodput logs/", "the exact step of a crash"),
    Program("DeepSpeed", ("deepspeed",), "goodput train.log", "starts"),
    Program(
        "torchrun, NVRx, Slurm", ("launcher", "sacct", "nvrx"), "goodput slurm-logs/   (`sacct -P` in it)", "steps"
    ),
    Program(
        "Kubernetes, JobSet, Kueue",
        ("kubernetes",),
        "goodput train.log objects.json   (of `kubectl get pods,jobs,jobsets,workloads -o json`)",
        "steps; earlier ends of a container",
    ),
    Program("DLRover", ("dlrover",), "goodput events_0.log", ""),
    Program("nv-one-logger", ("one-logger",), "goodput one_logger.jsonl", "lines that a restart overwrote"),
    Program("Hugging Face, Lightning, Keras", ("tensorboard",), "goodput runs/", "saves; up to 2 min before a kill"),
    Program("tqdm progress bars in stdout", ("progress-bars",), "goodput train.log", "saves; often the time of day"),
    Program("Weights & Biases", ("wandb",), "goodput wandb/", "saves; the last lines of a killed process"),
    Program(
        "MLflow",
        ("mlflow",),
        "goodput mlruns/   (or mlflow.db, mlflow+https://…)",
        "saves; the start of a resumed process",
    ),
    Program("Ray Train, Ray Tune", ("ray",), "goodput result.json", "saves; downtime before a restore"),
    Program("LLaMA-Factory", ("llama-factory",), "goodput trainer_log.jsonl", "the time of day; downtime"),
    Program("ms-swift", ("ms-swift",), "goodput logging.jsonl", "the time of day; downtime; saves"),
    Program("StyleGAN 2, 3", ("stylegan",), "goodput log.txt", "the time of day; downtime; saves"),
    Program("Ultralytics (YOLO)", ("ultralytics",), "goodput results.csv", "the time of day; downtime"),
    Program("mmengine (MMDetection)", ("mmengine-text",), "goodput work_dirs/NAME/", ""),
    Program("  scalars only", ("mmengine",), "goodput vis_data/scalars.json", "the time of day; starts"),
    Program("Detectron2", ("detectron2-text",), "goodput log.txt", ""),
    Program("  metrics only", ("detectron2",), "goodput metrics.json", "the time of day; starts"),
    Program("nanoGPT", ("nanogpt",), "goodput train.log", "the time of day; starts"),
    Program("modded-nanogpt", ("modded-nanogpt",), "goodput logs/RUN.txt", "the time of day; starts"),
    Program("nanotron", ("nanotron",), "goodput train.log", "saves; evaluations"),
    Program("PaddleNLP's Trainer", ("paddlenlp",), "goodput workerlog.0", "saves"),
    Program("PaddleOCR, PaddleClas, PaddleDetection", ("paddle-vision",), "goodput train.log", "starts; saves"),
    Program("torchvision, DETR, MAE, DINO", ("torchvision",), "goodput train.log", "the time of day; saves"),
    Program("PyTorch's ImageNet example", ("pytorch-examples",), "goodput train.log", "the time of day; saves"),
    Program("timm", ("timm",), "goodput train.log", "durations of saves; often the time of day"),
    Program("NeMo-RL", ("nemo-rl",), "goodput ray-driver.log", "the time of day"),
    Program("OpenRLHF", ("openrlhf",), "goodput train.log", "starts; saves"),
    Program("verl", ("verl",), "goodput train.log", "the time of day; saves"),
    Program("TensorFlow's Estimator", ("tf-estimator",), "goodput train.log", "starts; often the time of day"),
    Program("MLPerf", ("mllog",), "goodput result_0.txt", "saves"),
    Program("any other", (), "goodput LOG", "anything without a log line"),
)
"""One row per program, those that log most first."""
NO_TIME = (
    ("trainer_state.json of Hugging Face", "pass its runs/ (TensorBoard) instead"),
    ("metrics.csv of Lightning", "pass its lightning_logs/ (TensorBoard) instead"),
    ("CSVLogger of Keras", "pass the folder of its TensorBoard callback instead"),
)
"""Files of trainers without any timestamps, and the file to use instead."""


def program_lines() -> list[str]:
    """Return the list as lines of text."""
    lines = ["Logs that goodput reads, and the command. Values that a log does not record are unknown, not 0.", ""]
    for program in PROGRAMS:
        lines.append(f"{program.name}:")
        lines.append(f"    {program.command}")
        if program.unknown:
            lines.append(f"    not recorded: {program.unknown}")
    lines += ["", "Files without timestamps, which goodput does not read:"]
    lines += [f"    {name}: {instead}" for name, instead in NO_TIME]
    return [*lines, "", "A folder, a glob, gs://…, s3://… and compressed files (.gz, .zst) work the same way."]


@dataclass(frozen=True)
class Word:
    """The declaration of a word: a table of `words.toml`."""

    means: str
    word: str = ""
    """Its spelling, if different from the heading."""
    also: str = ""
    """Other words with the same meaning, separated by commas."""
    found: str = ""
    """The values it is computed from, or the log lines that show it."""
    isnt: str = ""
    """A sentence about what it is not."""
    next: str = ""
    """The command that shows more."""


WORDS: Mapping[str, Word] = TomlRows(Path(__file__).with_name("words.toml"), Word)
"""The words by their headings, in alphabetical order."""


def words() -> dict[str, Word]:
    """Return all words by their spelling."""
    return {row.word or heading: row for heading, row in WORDS.items()}


def others() -> dict[str, str]:
    """Return the words with the meaning of another one, and that one."""
    return {one: word for word, row in words().items() for one in filter(None, row.also.split(", "))}
