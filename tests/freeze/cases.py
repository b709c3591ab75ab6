"""The logs and command lines of the freeze. Paths are relative to the root of the repository, because outputs
contain them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.freeze.run import FOLDER, NAMES, THEN

WORKED, REAL, OWN, CAUSES = "tests/examples", "tests/real", "tests/freeze/logs", "tests/causes/examples"
SAVED = "tests/freeze/saved"
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
    "recorder-elastic": (f"{REAL}/recorder-s4/envelope.jsonl.gz",),
    "zones": (f"{REAL}/resiliency-cloud-naive-times/envelope.jsonl.gz",),
    "wandb": (f"{REAL}/wandb-0.31/wandb",),
    "tracker-beside-stdout": (f"{REAL}/wandb-why",),
    "mlflow": (f"{REAL}/mlflow-3.17/mlruns",),
    "ray": (f"{REAL}/ray-2.60",),
    "slurm": (f"{REAL}/slurm/llm-20b",),
    "slurm-array": (f"{REAL}/slurm/sweep",),
    "mmengine": (f"{REAL}/mmengine-0.10/work",),
    "dlrover": (f"{REAL}/dlrover-0.6",),
    "one-logger": (f"{REAL}/one-logger-2.3",),
    "bars": (f"{REAL}/transformers-bars/out_kill.txt", "--year", "2026", "--start", "2026-01-01"),
    "kernel-log": (f"{CAUSES}/02-killed-by-the-kernel",),
    "time-limit": (f"{CAUSES}/05-time-limit",),
    "many-ranks": (f"{CAUSES}/08-sixty-four-ranks/train.log",),
    "hostile-words": (f"{CAUSES}/12-hostile-words",),
    "kubernetes": (f"{OWN}/kubernetes",),
    "rank-files": (f"{OWN}/ranks",),
    "own-recorder": (f"{OWN}/own-recorder.jsonl",),
    "elastic-long": (f"{OWN}/elastic-long.jsonl",),
    "rollbacks": (f"{OWN}/rollbacks.jsonl",),
    "evaluations": (f"{OWN}/evaluations.jsonl",),
    "clock-jumps": (f"{OWN}/clock-jumps.jsonl",),
    "large-integers": (f"{OWN}/large-integers.jsonl",),
    "mapped-text": (f"{OWN}/mapped/train.log", "--mapping", f"{OWN}/mapped/own.toml"),
    "mapped-table": (f"{OWN}/mapped/train.csv", "--mapping", f"{OWN}/mapped/csv.toml"),
    "fleet": (f"{OWN}/fleet",),
    "hostile": (f"{OWN}/hostile.jsonl",),
    "broken": (f"{OWN}/broken.jsonl", "--job-name", "broken"),
    "cut-off": (f"{OWN}/cut.jsonl.gz",),
    "one-event": (f"{OWN}/one-event.jsonl",),
    "no-log": (f"{OWN}/no-log.txt",),
    "empty": (f"{OWN}/empty.jsonl",),
}
"""Name of a case, and the arguments of its command."""

COMMANDS = ("analyze", "rolling", "timeline", "disruptions", "steps", "advise", "jobs", "fleet", "check", "reconcile")
OTHER_COMMANDS = ("compare", "fetch", "watch", "monitor", "doctor", "record")
TEXT_FORMATS = ("table", "json", "csv", "markdown", "junit", "openmetrics")
SLOW_FORMATS = ("html", "svg", "png", "parquet", "parquet-events")
"""Formats that draw, or load a library: used for a few logs only."""
DRAWN = ("night", "elastic", "hostile", "several-jobs", "megatron")
NOT_OF = dict.fromkeys(("jobs", "fleet", "check"), ("window", "priced", "primer")) | {"rolling": ("window", "priced")}
"""Commands without an option for these logs, or without an answer about them."""
TERSE = (
    "older-branch", "counted-twice", "failed-starts", "running", "queued", "nemo", "maxtext", "zones", "wandb",
    "mlflow",
    "ray", "slurm", "slurm-array", "mmengine", "dlrover", "one-logger", "bars", "time-limit", "many-ranks",
    "hostile-words", "rank-files", "mapped-text", "mapped-table", "cut-off", "one-event", "no-log",
)  # fmt: skip
"""Logs that are read differently but written alike: only `analyze` runs on them in every format."""
RECONCILED = ("primer", "night", "elastic", "hostile", "several-jobs", "torchtitan", "empty")
"""Logs for which `reconcile` runs in every format, otherwise in one, because the other library takes seconds."""
QUICK = ("elastic", "hostile", "several-jobs")
"""Logs whose outputs the tests check in every format of text."""
QUICK_TERSE = ("empty", "torchtitan", "kernel-log", "clock-jumps")
"""Logs whose outputs the tests check as a table and as JSON."""

ONE_PAIR = ("sample_logs/llm-pretrain.jsonl", "sample_logs/llm-pretrain-r2.jsonl")
FLEET = ("fleet", f"{OWN}/fleet", "--labels", f"{OWN}/fleet.labels.csv", "--capacity", f"{OWN}/fleet.capacity.csv")
IN_FORMATS = {
    "compare": ("compare", *ONE_PAIR),
    "compare-three": ("compare", LOGS["primer"][0], *ONE_PAIR),
    "compare-baselines": ("compare", LOGS["rollbacks"][0], "--baseline", ONE_PAIR[0], "--baseline", ONE_PAIR[1]),
    "compare-saved": ("compare", LOGS["rollbacks"][0], "--baseline", f"{SAVED}/baseline-1.json", "--fail-if",
                      "goodput:-1pp"),
    "compare-jobs": ("compare", f"{OWN}/fleet", "-j", "vision-1", "-j", "vision-2", "--warn-if", "steps.p99:+10%"),
    "labelled": (*FLEET, "--by", "team", "--by", "cluster,week", "--fail-if", "any(team):goodput<70"),
    "allocated": (*FLEET, "--allocations", f"{OWN}/fleet.allocations.csv", "--count-unlogged", "--weight", "time"),
    "of-slurm": ("fleet", f"{REAL}/slurm", "--sacct", f"{REAL}/slurm/allocations.txt", "--by", "team",
                 "--price-per-hour", "2"),
    "attempts": ("disruptions", LOGS["kernel-log"][0], "--by", "attempt", "--accelerators", "64",
                 "--price-per-hour", "3"),
    "causes": ("disruptions", LOGS["megatron"][0], "--by", "cause"),
    "known-mtbf": ("advise", ONE_PAIR[0], "--mtbf", "6h"),
    "gates": ("analyze", ONE_PAIR[0], "--fail-under", "85", "--fail-if", "disruptions>2", "--warn-if", "queued>5%"),
    "strict": ("check", LOGS["clock-jumps"][0], "--strict", "-v"),
}  # fmt: skip
"""Command lines by name, each in every format."""

MORE = {
    "full": "analyze sample_logs/llm-pretrain.jsonl --full",
    "verbose": f"analyze {WORKED}/16-ranks-and-silent-deaths.jsonl -v",
    "quiet": f"analyze {OWN}/clock-jumps.jsonl -q",
    "no-command": f"{OWN}/rollbacks.jsonl",
    "strict-answer": f"analyze {OWN}/clock-jumps.jsonl --strict",
    "methods": "analyze sample_logs/llm-pretrain.jsonl --data-loading blocking --async-saves --stall-factor 0",
    "reference": "analyze sample_logs/llm-pretrain.jsonl --reference-step-time auto --exclude-stopped",
    "exclude": f"analyze {OWN}/rollbacks.jsonl --exclude 2026-01-01T00:02/2026-01-01T00:04",
    "as-of": f"analyze {OWN}/rollbacks.jsonl --as-of 2026-01-01T00:15",
    "zone": f"analyze {REAL}/resiliency-cloud-naive-times/envelope.jsonl.gz --timezone Europe/Berlin",
    "no-quotes": f"disruptions {CAUSES}/12-hostile-words --no-quotes",
    "run-of-job": "analyze sample_logs/trainers/maxtext-gke/entries.jsonl --run 1",
    "around": "timeline sample_logs/llm-pretrain.jsonl --around disruption:2 --events",
    "around-a-step": f"timeline {OWN}/evaluations.jsonl --around step:31 --events --margin 20s",
    "by-category": f"timeline {OWN}/evaluations.jsonl --category custom:EVAL_STEP --min-duration 30s",
    "rolling-windows": "rolling sample_logs/llm-pretrain.jsonl --window 1h --window 4h --every 2h --format csv",
    "slowest": "steps sample_logs/llm-pretrain.jsonl --slowest 25 --format csv",
    "worst-jobs": f"jobs {OWN}/fleet --sort goodput --limit 3",
    "explain": "check sample_logs/trainers/megatron-slurm --explain"
    " sample_logs/trainers/megatron-slurm/slurm-4101.out:20",
    "explain-mapped": f"check --mapping {OWN}/mapped/own.toml --explain {OWN}/mapped/train.log:47"
    f" {OWN}/mapped/train.log",
    "rejects": f"check {OWN}/mapped/train.csv --mapping {OWN}/mapped/csv.toml --rejects {FOLDER}/refused.csv",
    "suggest": "check --suggest sample_logs/trainers/own-loop.log",
    "suggest-table": f"check --suggest {OWN}/mapped/train.csv",
    "suggest-text": f"check --suggest {OWN}/mapped/train.log",
    "suggest-nothing": f"check --suggest {OWN}/no-log.txt",
    "by-week": f"fleet {WORKED} --by week",
    "fleet-last": f"fleet {OWN}/fleet --last 14d --sort goodput --top 2 --sizes 8,64",
    "fleet-of-names": f"fleet {OWN}/fleet -j llm-* --runs last --accelerators 8",
    "store": f"fleet {OWN}/fleet --store {FOLDER}/store {THEN} fleet {OWN}/fleet --store {FOLDER}/store --by week"
    f" {THEN} fleet {FOLDER}/nothing --store {FOLDER}/store",
    "site": f"fleet {OWN}/fleet -o {FOLDER}/site/ {THEN} fleet {OWN}/fleet --last 14d -o {FOLDER}/site/",
    "files": f"analyze {OWN}/rollbacks.jsonl " + " ".join(f"-o {FOLDER}/run.{end}" for end in (
        "txt", "json", "csv", "md", "html", "svg", "png", "xml", "prom", "segments.parquet", "events.parquet")),
    "files-there": f"jobs {OWN}/fleet -o {FOLDER}/a.csv {THEN} jobs {OWN}/fleet -o {FOLDER}/a.csv {THEN}"
    f" jobs {OWN}/fleet -o {FOLDER}/a.csv --force",
    "saved-and-compared": f"analyze {OWN}/rollbacks.jsonl -q -o {FOLDER}/a.json {THEN} compare {FOLDER}/a.json"
    f" {OWN}/elastic-long.jsonl",
    **{
        f"fetch.{end}": f"fetch {OWN}/rollbacks.jsonl {OWN}/ranks -o {FOLDER}/snapshot.{end} {THEN}"
        f" analyze {FOLDER}/snapshot.{end} -j back {THEN} fetch --update -o {FOLDER}/snapshot.{end}"
        for end in ("jsonl", "jsonl.gz", "parquet")
    },
    **{
        f"watch.{format_}": f"watch {OWN}/rollbacks.jsonl --updates 1 --as-of 2026-01-01T00:15 --format {format_}"
        for format_ in ("table", "json", "markdown", "csv", "openmetrics")
    },
    "monitor": f"monitor {WORKED}/12-elastic.jsonl --publish json:{FOLDER}/answers.jsonl --publish"
    f" prom:{FOLDER}/figures.prom --updates 1 --window 1h --fail-under 90",
    "monitor-of-fleet": f"monitor {OWN}/fleet/llm-70b.jsonl {OWN}/fleet/vision-2.jsonl --whole-job --publish"
    f" prom:{FOLDER}/figures.prom --updates 1",
    "record": f" {THEN} ".join(
        f"record {word} -j x --sink {FOLDER}/x.jsonl --time {1767225600 + 10 * at}{more}"
        for at, (word, more) in enumerate((
            ("scheduled", ""), ("job_started", " --node-rank 1"), ("step_finished", " --step 5"),
            ("checkpoint_saved", " --step 5"), ("preemption_notice", " --reason SIGTERM"), ("stopped", ""),
            ("no_such_event", ""), ("finished", " --step -1")))
    ) + f" {THEN} analyze {FOLDER}/x.jsonl",
    "no-such-file": "analyze no-such-file.jsonl",
    "no-such-scheme": "analyze nowhere://bucket/log",
    "no-such-format": "analyze sample_logs/llm-pretrain.jsonl --format xlsx",
    "no-such-option": "analyze sample_logs/llm-pretrain.jsonl --acelerators 8",
    "no-such-command": "analyse sample_logs/llm-pretrain.jsonl",
    "no-such-job": f"analyze {OWN}/fleet -j lllm-70b",
    "which-job": f"analyze {OWN}/fleet",
    "no-source": "analyze",
    "bad-gate": "analyze sample_logs/llm-pretrain.jsonl --fail-if goodputt<80",
    "bad-time": "analyze sample_logs/llm-pretrain.jsonl --from yesterday",
    "bad-mapping": f"analyze {OWN}/mapped/train.log --mapping {OWN}/fleet.labels.csv",
    "bad-labels": f"fleet {OWN}/fleet --labels {OWN}/fleet.capacity.csv",
    "version": "--version",
    "help": "--help",
    "help-help": "help help",
}  # fmt: skip
"""Command lines by name, each once."""
WORDS = Path(__file__).with_name("words.txt")
"""Arguments of `goodput help`."""


Case = tuple[str, tuple[str, ...]]


def cases(drawn: bool) -> Iterator[Case]:
    """Return every command line with the name of its output. drawn: include those of slow formats."""
    for command in COMMANDS:
        for log, arguments in LOGS.items():
            for format_ in _formats(command, log, drawn):
                rolling = ("--window", "1h") if command == "rolling" else ()
                yield f"{command}.{log}.{format_}", (command, *arguments, *rolling, "--format", format_)
    for name, arguments in IN_FORMATS.items():
        for format_ in (*TEXT_FORMATS, *(SLOW_FORMATS if drawn else ())):
            yield f"{name}.{format_}", (*arguments, "--format", format_)
    yield from ((name, tuple(line.split())) for name, line in MORE.items())
    yield from ((f"help.{command}", (command, "--help")) for command in (*COMMANDS, *OTHER_COMMANDS))
    yield from ((f"help-of.{word}".replace(" ", "-"), ("help", word)) for word in WORDS.read_text().splitlines())
    yield from ((f"names.{module}", (NAMES, module)) for module in ("goodput_cli", "goodput_cli.plugins"))


def _formats(command: str, log: str, drawn: bool) -> tuple[str, ...]:
    if log in NOT_OF.get(command, ()):
        return ()
    if command == "reconcile" and log not in RECONCILED:
        return ("json",)
    if log in TERSE and command != "analyze":
        return ("table", "json")
    return (*TEXT_FORMATS, *(SLOW_FORMATS if drawn and log in DRAWN else ()))


def quick_cases() -> Iterator[Case]:
    """Return a few logs in every command, in every text format or in two, and the public names: the tests compare
    their digests."""
    for name, arguments in cases(drawn=False):
        command, log, format_ = (*name.split("."), "", "")[:3]
        dear = command == "reconcile" and format_ != "json" and log != "elastic"  # see RECONCILED
        is_quick = log in QUICK or (log in QUICK_TERSE and format_ in ("table", "json"))
        if command == "names" or (is_quick and command in COMMANDS and command != "fleet" and not dear):
            yield name, arguments
