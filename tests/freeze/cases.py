"""The logs and command lines of the freeze. Paths are relative to the root of the repository: outputs name them."""

from __future__ import annotations

from collections.abc import Iterator

WORKED = "tests/examples"
LOGS = {
    "primer": ("sample_logs/primer-50-percent.jsonl", "--reference-step-time", "120"),
    "night": ("sample_logs/llm-pretrain.jsonl",),
    "priced": ("sample_logs/llm-pretrain.jsonl", "--accelerators", "256", "--price-per-hour", "4.2"),
    "window": ("sample_logs/llm-pretrain.jsonl", "--from", "-4h", "--to", "-1h"),
    "fsdp": ("sample_logs/fsdp-2-attempts.jsonl",),
    "counted-twice": ("sample_logs/differences/counted_twice.jsonl",),
    "older-branch": (f"{WORKED}/04-older-branch.jsonl",),
    "two-hosts": (f"{WORKED}/08-two-hosts.jsonl",),
    "hang": (f"{WORKED}/09-hang-inside-a-step.jsonl",),
    "elastic": (f"{WORKED}/12-elastic.jsonl",),
    "failed-starts": (f"{WORKED}/13-failed-starts.jsonl",),
    "running": (f"{WORKED}/14-still-running.jsonl",),
    "ranks": (f"{WORKED}/16-ranks-and-silent-deaths.jsonl",),
    "rolled-back": (f"{WORKED}/17-rolled-back-checkpoint.jsonl",),
    "queued": (f"{WORKED}/18-queued.jsonl",),
    "several-jobs": (f"{WORKED}/01-plain.jsonl", f"{WORKED}/12-elastic.jsonl", f"{WORKED}/14-still-running.jsonl"),
    "megatron": ("sample_logs/trainers/megatron-slurm",),
    "nemo": ("sample_logs/trainers/nemo-ft_launcher.log",),
    "own-loop": ("sample_logs/trainers/own-loop.log",),
    "torchtitan": ("sample_logs/trainers/torchtitan/train.log",),
    "tensorboard": ("sample_logs/trainers/huggingface",),
    "maxtext": ("sample_logs/trainers/maxtext-gke/entries.jsonl",),
    "mldiagnostics": ("tests/real/mldiagnostics-v1010",),
    "hostile": ("tests/freeze/logs/hostile.jsonl",),
    "empty": ("tests/freeze/logs/empty.jsonl",),
}
"""A name, and what stands behind the command."""

COMMANDS = ("analyze", "rolling", "timeline", "disruptions", "steps", "advise", "jobs", "fleet", "check", "reconcile")
TEXT_FORMATS = ("table", "json", "csv", "markdown", "junit", "openmetrics")
SLOW_FORMATS = ("html", "svg", "png", "parquet", "parquet-events")
"""They draw, or load a library: for a few logs only."""
DRAWN = ("night", "elastic", "hostile", "several-jobs", "megatron")

QUICK = ("elastic", "hostile", "empty", "several-jobs", "torchtitan")

MORE = {
    "compare": ("compare", "sample_logs/llm-pretrain.jsonl", "sample_logs/llm-pretrain-r2.jsonl"),
    "compare-three": ("compare", LOGS["primer"][0], LOGS["night"][0], "sample_logs/llm-pretrain-r2.jsonl"),
    "gates": ("analyze", LOGS["night"][0], "--fail-under", "85", "--fail-if", "disruptions>2"),
    "verbose": ("analyze", LOGS["ranks"][0], "-v"),
    "around": ("timeline", LOGS["night"][0], "--around", "disruption:2", "--events"),
    "explain": ("check", LOGS["megatron"][0], "--explain", "sample_logs/trainers/megatron-slurm/slurm-4101.out:20"),
    "suggest": ("check", "--suggest", LOGS["own-loop"][0]),
    "by-week": ("fleet", "tests/examples", "--by", "week"),
    "no-such-file": ("analyze", "no-such-file.jsonl"),
    "no-such-format": ("analyze", LOGS["night"][0], "--format", "xlsx"),
    "no-such-option": ("analyze", LOGS["night"][0], "--acelerators", "8"),
    "bad-gate": ("analyze", LOGS["night"][0], "--fail-if", "goodputt<80"),
}
"""Command lines of their own, by name; the first of them in each text format."""


def cases(drawn: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every command line with the name of its output. drawn: those of slow formats too."""
    for command in COMMANDS:
        for log, arguments in LOGS.items():
            if (command in ("jobs", "fleet", "check", "rolling") and log in ("window", "priced")) or (
                log == "primer" and command in ("check", "fleet", "jobs")
            ):
                continue
            rolling = ("--window", "1h") if command == "rolling" else ()
            formats = (*TEXT_FORMATS, *(SLOW_FORMATS if drawn and log in DRAWN else ()))
            for format_ in formats:
                yield f"{command}.{log}.{format_}", (command, *arguments, *rolling, "--format", format_)
    for name, arguments in MORE.items():
        if name.startswith("compare"):
            for format_ in (*TEXT_FORMATS, *(SLOW_FORMATS[:-1] if drawn else ())):
                yield f"{name}.{format_}", (*arguments, "--format", format_)
        else:
            yield name, arguments
    for command in (*COMMANDS, "compare", "fetch", "watch", "monitor", "doctor", "record"):
        yield f"help.{command}", (command, "--help")
    yield "help", ("--help",)


def quick_cases() -> Iterator[tuple[str, tuple[str, ...]]]:
    """A few logs in every command and every format of text: what the tests hold by digests."""
    for name, arguments in cases(drawn=False):
        if name.split(".")[1:2] in ([log] for log in QUICK) and not name.startswith("fleet"):
            yield name, arguments
