"""What `goodput fleet` makes of every job: the results of its runs, put into a store, under a key that says what they
were made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from hashlib import blake2b
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any

from goodput_cli.analysis.question import Question
from goodput_cli.events.formats.registry import ENTRY_POINT_GROUP as FORMATS
from goodput_cli.events.schema import EventLog
from goodput_cli.fleet.passes.work import Origin
from goodput_cli.fleet.store.results import KEY_BYTES, AsOf, RunResult, Runs, account_runs


@dataclass(frozen=True)
class AccountRuns:
    """Work of `goodput fleet`; what the driver is given of each job is its key in the store."""

    question: Question
    runs: Runs
    as_of: AsOf | None
    reader: str
    """How its documents were read: a hash of the options for that and of this code."""
    put: Callable[[Sequence[tuple[bytes, RunResult]]], None]
    """Puts results into the store, each with the key of its job."""

    def account(self, job: EventLog, origin: Origin, /) -> tuple[bytes, list[RunResult]]:
        documents = tuple(dict.fromkeys(uri for uri, _ in origin))
        results = account_runs(job, self.question, self.runs, self.as_of, documents)
        return self.key(job.table.jobs[0], origin, int(job.table.end.max())), results

    def keep(self, answers: Sequence[Any], /) -> Sequence[bytes]:
        self.put([(key, result) for key, results in answers for result in results])
        return [key for key, _ in answers]

    def key(self, job: str, origin: Origin, last_event_ns: int) -> bytes:
        """What the results of a job are made of, in 16 bytes: its documents, the question, and the code."""
        alive = self.as_of is not None and self.as_of.counts_for(last_event_ns)
        as_of = asdict(self.as_of) if alive and self.as_of is not None else None
        made_of = [job, origin, self._asked, as_of]
        return blake2b(json.dumps(made_of, sort_keys=True).encode(), digest_size=KEY_BYTES).digest()

    @cached_property
    def _asked(self) -> list[Any]:
        question = self.question
        now = any(when.kind == "now" for span in question.exclude for when in (span.start, span.end))
        return [
            self.reader, self.runs, question.timezone, str(question.reference_step_time), asdict(question.method),
            [span.text for span in question.exclude], question.now_ns if now else None,
        ]  # fmt: skip


@cache
def code_version() -> str:
    """Changes with this package and with the formats that others plug in: results of other code are not used."""
    digest = blake2b(digest_size=KEY_BYTES)
    package = Path(str(files("goodput_cli")))
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    for point in sorted(entry_points(group=FORMATS), key=lambda one: (one.name, one.value)):
        version = point.dist.version if point.dist is not None else ""
        digest.update(f"{point.name}\0{point.value}\0{version}\0".encode())
    return digest.hexdigest()
