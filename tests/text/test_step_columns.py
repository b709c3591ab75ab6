"""Records of steps that are read as columns give the same events, measures and diagnostics as lines read one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pytest

from goodput_cli.events.decode import Decoder
from goodput_cli.events.documents import Documents
from goodput_cli.events.mappings.rules import MappedRecords
from goodput_cli.events.read import decode_batches
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.events.text import equal_widths, line_shapes, stretches
from goodput_cli.events.text.log_lines import Stretch
from goodput_cli.events.text.scan import TextLines
from goodput_cli.sources.base import RawBatch, ReadContext
from goodput_cli.vocabulary.when import AUTO
from tests.support.draws import EXPLORES, drawn, number_of
from tests.text.test_templates import LOGS, repeated, sizes_of

_MOST = 3_000
"""Characters of a known log that are read, to limit the time of the test."""
_CHANGED = 1_772_452_800_000_000_000
_OWN = """
name = "own"
[[rule]]
event = "step"
line = "step {step:int}/{total:int} loss={_} {each:float} ms/step, {t:int} tokens/s"
each = { unit = "ms" }
work = { tokens = { field = "t", per = "second" } }
[[rule]]
event = "step"
line = "step {step:int} done, loss={_}"
each = { of = "usual" }
[[rule]]
event = "step"
line = "epoch {epoch:int}/{epochs:int} batch {step:int}/{of:int} loss={_} {each:float} it/s"
each = { unit = "per_s" }
[[rule]]
event = "start"
once = true
line = "Starting training"
[[rule]]
event = "save"
line = "Saved checkpoint ({took:float} s)"
[[rule]]
event = "save"
line = "checkpoint written"
[[rule]]
event = "eval"
line = "evaluated at {step:int}"
[[rule]]
event = "crashed"
line = "we died"
"""
HINTS = ReadingOptions(now_ns=_CHANGED).with_draft(_OWN)


def events_of(
    texts: Mapping[str, str], size: int, *, columns: bool, hints: ReadingOptions, zone: str = AUTO
) -> dict[str, Any]:
    """Return all that is read from the files of a log, in blocks of whole lines of about a size."""
    batches = [iter(list(_batches(name, text.encode(), size))) for name, text in texts.items()]
    TextLines.reads_columns = MappedRecords.reads_columns = columns
    try:
        log = decode_batches(batches, zone, ReadContext(lambda _: None), [], hints)
    finally:
        TextLines.reads_columns = MappedRecords.reads_columns = True
    table = {one.name: getattr(log.table, one.name) for one in fields(log.table)}
    return {"table": _plain(table), "formats": _plain(log.formats), "diagnostics": _plain(log.diagnostics)}


def _batches(name: str, data: bytes, size: int) -> Iterator[RawBatch]:
    line = 1
    while data:
        end = data.find(b"\n", size) + 1 or len(data)
        yield RawBatch(name, line, data[:end], _CHANGED)
        line, data = line + data.count(b"\n", 0, end), data[end:]


def _plain(value: Any) -> Any:
    """Return a value in which arrays are lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(one) for one in value]
    if hasattr(value, "__dataclass_fields__"):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return value


def compare(text: str | Mapping[str, str], number: int, hints: ReadingOptions | None = None, zone: str = AUTO) -> None:
    """Read a log both ways. text: of one file, or by the names of files; number: draws the size of blocks."""
    texts = {"train.log": text} if isinstance(text, str) else text
    hints = hints or ReadingOptions(now_ns=_CHANGED)
    for size in sizes_of(number):
        found = [events_of(texts, size, columns=columns, hints=hints, zone=zone) for columns in (True, False)]
        for name in found[0]["table"]:
            assert found[0]["table"][name] == found[1]["table"][name], (name, size)
        assert found[0] == found[1], size


@pytest.fixture
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few records be a stretch, and few lines alike."""
    monkeypatch.setattr(stretches, "_FEWEST", 1)
    monkeypatch.setattr(line_shapes, "FEWEST", 2)
    monkeypatch.setattr(equal_widths, "FEWEST", 2)
    monkeypatch.setattr(equal_widths, "FEWEST_ALIKE", 2)


@pytest.mark.usefixtures("short_stretches")
@pytest.mark.parametrize("name", drawn(LOGS, 2))
def test_columns_change_nothing_in_known_logs(name: str) -> None:
    text = LOGS[name]
    compare(repeated(text[:_MOST]), number_of(name) // 2)


_TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nRuntimeError: CUDA out of memory\n'
_CANCELLED = (
    "srun: error: node7: task 3: Killed\n"
    "slurmstepd: error: *** STEP 7.0 ON n CANCELLED AT 2026-03-29T00:30:00 DUE TO NODE FAILURE ***\n"
)


@dataclass
class Writer:
    """Writes a made-up log of one program."""

    random: Random
    program: str
    now: datetime = datetime(2026, 3, 28, 23, 30, tzinfo=UTC)
    step: int = 0
    stride: int = 1
    each: float = 400.0
    prefix: str = ""
    whole: bool = False

    def stamp(self) -> str:
        return f"{self.now:%Y-%m-%d %H:%M:%S}" + ("" if self.whole else f",{self.now.microsecond // 1000:03d}")

    def record(self) -> str:
        self.step += self.stride
        took = self.each * self.random.uniform(0.9, 1.1)
        self.now += timedelta(milliseconds=took * self.stride)
        loss = self.random.uniform(0.5, 12)
        if self.program == "megatron":
            stamp = self.stamp().replace(",", ".")
            flops = f"throughput per GPU (TFLOP/s/GPU): {self.random.uniform(90, 110):.1f}"
            return (
                f"{self.prefix} [{stamp}] iteration {self.step:8d}/  100000 | consumed samples: {self.step * 64:12d} | "
                f"elapsed time per iteration (ms): {took:.1f} | {flops} | global batch size:    64 | "
                f"lm loss: {loss:.6E} | grad norm: 0.412 |\n"
            )
        if self.program == "torchtitan":
            tps = self.random.randint(900, 8000)
            return (
                f"{self.prefix}[titan] {self.stamp()} - root - INFO - step: {self.step:2}  loss: {loss:8.4f}  "
                f"memory: 39.00GiB(41.04%)  tps: {tps:,}  tflops: {loss * 30:.2f}  mfu: {loss:.2f}%\n"
            )
        if self.program == "usual":
            return f"{self.prefix}{self.stamp()} INFO step {self.step} done, loss={loss:.4f}\n"
        if self.program == "epochs":
            epoch, batch = divmod(self.step - 1, 120)
            place = f"epoch {epoch + 1}/9 batch {batch + 1}/120"
            return f"{self.prefix}{self.stamp()} INFO {place} loss={loss:.4f} {1000 / took:.3f} it/s\n"
        tokens = self.random.choice((0, 512, 12_345))
        return (
            f"{self.prefix}{self.stamp()} INFO step {self.step}/100000 loss={loss:.4f} {took:.1f} ms/step, {tokens} "
            "tokens/s\n"
        )

    def start(self) -> str:
        self.now += timedelta(seconds=self.random.choice((0, 0, 5, 2000)))
        if self.program == "megatron":
            return (
                "time to initialize megatron (seconds): 25.000\n"
                f"[after megatron is initialized] datetime: {self.now:%Y-%m-%d %H:%M:%S.%f} \n"
                f"[before the start of training step] datetime: {self.now:%Y-%m-%d %H:%M:%S.%f} \n"
            )
        if self.program == "torchtitan":
            return f"{self.prefix}[titan] {self.stamp()} - root - INFO - Starting job: Llama 3 8B training\n"
        return f"{self.prefix}{self.stamp()} INFO Starting training\n"

    def other(self) -> str:
        """Return something else that stands among records, or change how they go on."""
        return self.random.choice((self.restart, self.save, self.line, self.change))()

    def restart(self) -> str:
        self.step = max(self.step - self.random.choice((0, 1, 5, 40)), 0)
        death = self.random.choice(("", "", f"{self.stamp()} INFO we died\n", _CANCELLED, _TRACEBACK))
        return death + self.start()

    def save(self) -> str:
        self.now += timedelta(seconds=4)
        if self.program == "megatron":
            return (
                f"saving checkpoint at iteration {self.step:7d} to /ckpt in torch_dist format\n"
                f"  successfully saved checkpoint from iteration {self.step:7d} to /ckpt\n"
                "    save-checkpoint ................................: (3900.0, 4000.0)\n"
            )
        what = ("Saved checkpoint (4.0 s)", "checkpoint written", f"evaluated at {self.step}")
        return f"{self.stamp()} INFO {self.random.choice(what)}\n"

    def line(self) -> str:
        twice = self.record()
        others = (
            _TRACEBACK,
            _CANCELLED,
            f"{self.stamp()} INFO hello {self.random.randint(1, 9)}\n",
            f"{self.stamp()} INFO DataLoader worker is killed by signal: Killed\n",
            "loading shard\n\nNCCL INFO Channel 00/02\n",
            "\r 12%|#   | 12/100 [00:10<10:00,  1.50it/s]\n",
            "    forward-backward ...............................: (300.10, 310.20)\n",
            twice + twice.replace("\n", " \n"),
        )
        return self.random.choice(others)

    def change(self) -> str:
        what = self.random.randrange(5)
        if what == 0:
            self.now -= timedelta(seconds=self.random.choice((1, 3, 1800)))
        elif what == 1:
            self.now += timedelta(seconds=self.random.choice((30, 900, 3600)))
        elif what == 2:
            self.stride = self.random.choice((1, 1, 2, 10))
        elif what == 3:
            self.each = self.random.choice((1.0, 90.0, 400.0, 15_000.0))
        else:
            self.step += self.random.choice((1, 7))
        return ""

    def log(self, lines: int, seldom: float) -> str:
        text = self.start()
        for _ in range(lines):
            text += self.record()
            if self.random.random() < seldom:
                text += self.other()
        return text


def writers(seed: int) -> Iterator[Writer]:
    """Yield writers of each program."""
    for program in ("megatron", "own", "torchtitan", "usual", "epochs"):
        random = Random(f"{program}{seed}")
        yield Writer(
            random,
            program,
            step=random.choice((0, 0, 95, 9_970)),
            each=random.choice((20.0, 400.0, 6_000.0)),
            prefix=random.choice(("", "", "[rank0]:", "3: ")),
            whole=random.random() < 0.3,
        )


_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[,.]\d+)?(?: INFO)? ?")


def _collected(text: str, zeros: str, *, own: bool) -> str:
    """Return a log as a collector prints it. own: True to keep the timestamps of the lines."""
    found, last = [], "2026-03-28T23:29:00.5Z"
    for number, line in enumerate(text.split("\n")[:-1]):
        stamp = _STAMP.search(line)
        last = last if stamp is None else f"{stamp[1]}T{stamp[2]}.{number % 900 + 100}{zeros}Z"
        found.append(f"{last} {line if own or stamp is None else line[: stamp.start()] + line[stamp.end() :]}\n")
    return "".join(found)


def _without_stamps(text: str, *, of_all: bool) -> str:
    """Return a log without timestamps in the lines of records, or in all lines."""
    lines = text.split("\n")
    return "\n".join(_STAMP.sub("", line) if of_all or "loss=" in line else line for line in lines)


def _with_long_numbers(text: str) -> str:
    """Return a log whose records contain numbers of any length next to the loss."""
    random = Random(len(text))

    def numbers(found: re.Match[str]) -> str:
        values = (random.randrange(10 ** random.randrange(1, 12)), random.random() * 10 ** random.randrange(-6, 4))
        return f"{found[0]} acc1={values[0]} lr={values[1]!r} in {random.randrange(20)}.{random.randrange(300)}.7 "

    return re.sub(r"loss[=:] *[\d.E+-]+", numbers, text)


CLOCKS: dict[str, Callable[[str], str]] = {
    "collected": lambda text: _collected(text, "", own=False),
    "collected-twice": lambda text: _collected(text, "000001", own=True),
    "long-numbers": _with_long_numbers,
    "letters": lambda text: text.replace(" INFO ", " \u2502 INFO \u00e9 ").replace("loss=", "loss=\u2192"),
    "untimed": lambda text: _without_stamps(text, of_all=True),
    "untimed-records": lambda text: _without_stamps(text, of_all=False),
}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("seed", range(2))
def test_columns_change_nothing_with_other_clocks(clock: str, seed: int) -> None:
    for number, writer in enumerate(writers(seed), seed):
        compare(CLOCKS[clock](writer.log(300, 0.02)), number, HINTS, "Europe/Berlin")


@pytest.mark.usefixtures("short_stretches")
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("seed", range(2))
def test_columns_change_nothing_in_restless_logs_with_other_clocks(clock: str, seed: int) -> None:
    for number, writer in enumerate(writers(seed), seed):
        text = CLOCKS[clock](writer.log(150, 0.2))
        compare(text, number, HINTS)
        if EXPLORES or number % 2:
            assert _grown(text, columns=True) == _grown(text, columns=False)
        if EXPLORES or not number % 2:
            compare({"run/rank0.log": text, "run/rank1.log": CLOCKS[clock](writer.log(90, 0.05))}, number // 2, HINTS)


@pytest.mark.parametrize("seed", range(2))
def test_columns_change_nothing_in_long_logs(seed: int) -> None:
    for number, writer in enumerate(writers(seed), seed):
        compare(writer.log(400, 0.02), number, HINTS, "Europe/Berlin")


@pytest.mark.usefixtures("short_stretches")
@pytest.mark.parametrize("seed", range(2))
def test_columns_change_nothing_in_restless_logs(seed: int) -> None:
    for number, writer in enumerate(writers(seed), seed):
        compare(writer.log(150, 0.2), number, HINTS)


@pytest.mark.usefixtures("short_stretches")
@pytest.mark.parametrize("seed", range(3))
def test_columns_change_nothing_where_writers_take_turns(seed: int) -> None:
    random = Random(seed)
    for number, program in enumerate(("megatron", "own", "usual", "epochs"), seed):
        some = [Writer(random, program, prefix=prefix) for prefix in random.choice((("", ""), ("0: ", "1: ")))]
        text = "".join(writer.start() for writer in some)
        while len(text) < 30_000:
            writer = random.choice(some)
            text += "".join(writer.record() for _ in range(random.choice((1, 1, 9, 40))))
        compare(text, number, HINTS)


@pytest.mark.usefixtures("short_stretches")
@pytest.mark.parametrize("seed", range(3))
def test_columns_change_nothing_in_growing_logs(seed: int) -> None:
    for writer in writers(seed):
        text = writer.log(200, 0.1)
        assert _grown(text, columns=True) == _grown(text, columns=False)


def _grown(text: str, *, columns: bool) -> list[Any]:
    """Return what is read from a log whenever it has grown by some lines."""
    TextLines.reads_columns = MappedRecords.reads_columns = columns
    try:
        decoder, documents = Decoder(AUTO, HINTS), Documents(HINTS)
        found = []
        for batch in _batches("train.log", text.encode(), 1 << 13):
            for part in documents.read(batch):
                decoder.add(batch.source, part)
            log = decoder.finish()
            found.append([_plain(getattr(log.table, one)) for one in ("time", "end", "step", "step_time", "line")])
        return found
    finally:
        TextLines.reads_columns = True


@pytest.mark.usefixtures("short_stretches")
@pytest.mark.parametrize("seed", range(2))
def test_columns_change_nothing_in_several_files(seed: int) -> None:
    for number, writer in enumerate(writers(seed), seed):
        attempts = {}
        for number in range(3):
            attempts[f"run/slurm-{410 + number}.out"] = writer.log(90, 0.05)
            writer.step = max(writer.step - writer.random.choice((0, 7)), 0)
        compare(attempts, number, HINTS)
        ranks = [Writer(Random(seed + rank), writer.program, writer.now, prefix=f"{rank}: ") for rank in (0, 1)]
        files = {f"run/rank{rank}.log": one.log(90, 0.03) for rank, one in enumerate(ranks)}
        compare(files, number + 1, HINTS)
        compare({**attempts, "run/sacct.txt": _SACCT, "other/a.jsonl": _RECORDED if seed % 2 else ""}, number, HINTS)


_SACCT = """JobID|JobName|State|Submit|Start|End
410|llm|FAILED|2026-03-28T23:20:00|2026-03-28T23:25:00|2026-03-28T23:40:00
411|llm|FAILED|2026-03-28T23:20:00|2026-03-28T23:41:00|2026-03-29T00:10:00
412|llm|COMPLETED|2026-03-28T23:20:00|2026-03-29T00:11:00|2026-03-29T02:10:00
"""
_RECORDED = """{"job_name": "job", "job_start_time": 1774740600}
{"job_name": "job", "step_count": 0, "step_start_time": 1774740700}
{"job_name": "job", "step_count": 1, "step_start_time": 1774740710}
{"job_name": "job", "job_end_time": 1774740720}
"""


@pytest.mark.parametrize("clock", [*(one for one in CLOCKS if one != "long-numbers"), ""])
def test_most_records_of_a_calm_log_are_columns(clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    init = Stretch.__init__

    def noted(self: Stretch, *values: Any, **named: Any) -> None:
        init(self, *values, **named)
        kept.append(len(self))

    monkeypatch.setattr(Stretch, "__init__", noted)
    for writer in writers(0):
        kept.clear()
        text = CLOCKS.get(clock, str)(writer.log(4000, 0))
        events_of({"train.log": text}, 1 << 20, columns=True, hints=HINTS)
        assert sum(kept) / 2 > 0.8 * 4000, writer.program  # each is made again when it is placed
