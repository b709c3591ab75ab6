"""Properties of every log, on the logs of the cases (`cases/*.toml`): its answer does not depend on how the log is
stored, packed, cut into files or prefixed.

Each test takes a fixed draw of the cases: each log is in that of rotated files, of begins, or of a block size. Known
failures are strict: a fix removes its row.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.errors import GoodputError
from goodput_cli.events.documents import document_reader
from goodput_cli.events.reading_options import ReadingOptions
from goodput_cli.sources.base import RawBatch
from tests.support.draws import drawn, number_of
from tests.text.case_set import load_cases

CASES = {case.name: case for case in load_cases()}
LOGS = {name: next(iter(case.files.values())).encode() for name, case in CASES.items() if len(case.files) == 1}
PASTED = {"lines-are-numbered-by-a-viewer", "log-is-quoted"}
"""Logs with marks of a viewer or a quote before all lines. Nothing rotates them, and their first block shows it."""
STORED = [name for name in LOGS if name not in PASTED]
FOLDERS = {name: case for name, case in CASES.items() if len(case.files) > 1}
_CHANGED = 1_772_452_800
"""Time of the last change of each file (2026-03-02 12:00:00 UTC): nothing may depend on the time of the test."""


class Answer(NamedTuple):
    """What must be equal for two logs with the same lines."""

    goodput: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    attempts: int = 0
    disruptions: int = 0
    kept: float = 0.0
    wasted: int = 0
    last_step: int | None = None
    ending: str = ""
    window_ns: int = 0
    badput: Mapping[str, int] = {}
    runs: int = 0
    """Runs in the log; only the last one is analyzed."""
    refused: str = ""


def answer(*sources: Path) -> Answer:
    """Return the answer about a log."""
    try:
        return answer_of(goodput_cli.analyze([str(one) for one in sources], timezone="UTC"))
    except GoodputError as error:
        return answer_of(error)


def answer_of(found: Analysis | GoodputError) -> Answer:
    """Return what must be equal of an analysis, or of an error."""
    if isinstance(found, GoodputError):
        return Answer(refused=type(found).__name__)
    percents = (found.goodput_percent, found.at_least_percent, found.at_most_percent)
    goodput, at_least, at_most = (None if one is None else round(one, 6) for one in percents)
    job, wasted = found.job, sum(one.steps_lost or 0 for one in found.disruptions)
    return Answer(
        goodput, at_least, at_most, job.attempts, job.disruptions, job.kept_steps or 0.0, wasted, job.last_step,
        job.ending, found.window.counted_ns, {one.label or one.category: one.ns for one in found.badput if one.ns},
        1 + any(one.code == "earlier_runs" for one in found.diagnostics),
    )  # fmt: skip


def write(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files, and return their paths."""
    paths = [folder / name for name in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (_CHANGED, _CHANGED))
    return paths


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Answer]:
    """Return the answer about the unchanged log of a case."""

    @cache
    def of(name: str) -> Answer:
        if "train.log" in CASES[name].files:
            return answer_of(CASES[name].analysis)
        return answer(*write(tmp_path_factory.mktemp("whole"), {"train.log": LOGS[name]}))

    return of


def cut(log: bytes, at: float) -> tuple[bytes, bytes]:
    """Return a log in two parts, cut after a line. States of a bar are lines."""
    lines = log.splitlines(keepends=True)
    count = int(len(lines) * at)
    return b"".join(lines[:count]), b"".join(lines[count:])


def differing(names: list[str], whole: Callable[[str], Answer], changed: Callable[[str], Answer]) -> list[str]:
    """Return the logs whose answer changes."""
    return [name for name in names if changed(name) != whole(name)]


def test_rotated_log_is_read_as_one(tmp_path: Path, whole: Callable[[str], Answer]) -> None:
    def rotated(name: str) -> Answer:
        first, second = cut(LOGS[name], (0.5, 0.3, 0.8)[len(name) % 3])
        write(tmp_path / name, {"train.log.1": first, "train.log": second})
        return answer(tmp_path / name)

    assert differing(drawn(STORED, 4), whole, rotated) == []


SCHEMES: dict[str, tuple[str, ...]] = {
    "numbers": ("train.log.2", "train.log.1", "train.log"),
    "from 0": ("train.log.1", "train.log.0", "train.log"),
    "packed": ("train.log.2.gz", "train.log.1.gz", "train.log"),
    "dates": ("train.log-20260301", "train.log-20260302.gz", "train.log"),
    "times": ("train.log.2026-03-01_10", "train.log.2026-03-01_11", "train.log"),
    "docker": ("3f9a-json.log.2", "3f9a-json.log.1", "3f9a-json.log"),
    "parts": ("train.log.part1", "train.log.part2", "train.log.part3"),
    "split": ("train.log.aa", "train.log.ab", "train.log.ac"),
    "split without a prefix": ("xaa", "xab", "xac"),
    "split with digits": ("train.log.00", "train.log.01", "train.log.02"),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_parts_of_any_naming_are_read_as_one(scheme: str, tmp_path: Path, whole: Callable[[str], Answer]) -> None:
    """Cut at any byte; the files are named in any order."""

    def parts(name: str) -> Answer:
        log, third = LOGS[name], len(LOGS[name]) // 3
        pieces = (log[:third], log[third : 2 * third], log[2 * third :])
        data = {
            file: gzip.compress(piece) if file.endswith(".gz") else piece
            for file, piece in zip(SCHEMES[scheme], pieces, strict=True)
        }
        paths = write(tmp_path / name, data)
        return answer(paths[1], paths[2], paths[0])

    offset = list(SCHEMES).index(scheme)
    assert differing(drawn(STORED, 20, 2 * offset), whole, parts) == []


def test_evidence_of_parts_is_in_their_files(tmp_path: Path) -> None:
    for name in drawn(STORED, 16):
        log = LOGS[name]
        first, second = cut(log, 0.5)
        paths = write(tmp_path / name, {"train.log.1": first, "train.log": second})
        (unsplit,) = write(tmp_path / f"{name}-unsplit", {"train.log": log})
        try:
            events = goodput_cli.analyze(str(tmp_path / name), timezone="UTC").events
            expected = goodput_cli.analyze(str(unsplit), timezone="UTC").events
        except GoodputError:
            continue
        lines = {str(path): path.read_bytes().split(b"\n") for path in paths}
        found = [lines[one][line - 1] for one, line in zip(events["source"], events["line"], strict=True)]
        every = log.split(b"\n")
        cut_line = len(first.split(b"\n"))  # a bar is cut between two states of one line
        for place, line, text in zip(events["evidence"], expected["line"], found, strict=True):
            assert place.rpartition(":")[0] in lines
            assert text in every[line - 1] or line == cut_line, (name, place)


def test_gzip_changes_nothing(tmp_path: Path, whole: Callable[[str], Answer]) -> None:
    def packed(name: str) -> Answer:
        return answer(*write(tmp_path / name, {"train.log.gz": gzip.compress(LOGS[name])}))

    assert differing(drawn(LOGS, 16, 10), whole, packed) == []


def test_order_of_files_changes_nothing(tmp_path: Path) -> None:
    wrong = []
    for name, case in FOLDERS.items():
        paths = write(tmp_path / name, {file: text.encode() for file, text in case.files.items()})
        wrong += [] if answer(*paths) == answer(*reversed(paths)) else [name]
    assert wrong == []


PREFIXES = ("[rank0]: ", "0: ", "pod")


def prefixed(log: bytes, prefix: str) -> bytes:
    """Return a log with a prefix on each line; that of a pod is the time of the line."""
    lines = log.split(b"\n")
    if prefix != "pod":
        return b"\n".join(prefix.encode() + line if line else line for line in lines)
    return b"\n".join(
        b"%bT%b.%b000000Z %b" % (line[:10], line[11:19], _milliseconds(line), line) if line else line for line in lines
    )


def _milliseconds(line: bytes) -> bytes:
    return line[20:23] if re.fullmatch(rb"[.,]\d{3}", line[19:23]) else b"000"


_HAS_PREFIX = re.compile(
    rb"(?m)^(?:\[?(?:rank|node|pod|worker|RANK)|\d{1,3}: |\[\w+[-_]?\d+\])|\r|[rR]ank \d|^\{|,.*,.*,|elastic/"
)
_IS_DATED = re.compile(rb"(?:2026-\d\d-\d\d \d\d:\d\d:\d\d[^\n]*\n)+")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefix_changes_nothing(prefix: str, tmp_path: Path, whole: Callable[[str], Answer]) -> None:
    """Logs with ranks or launchers, bars and tables are left out: no launcher prints its prefix before each state or
    row, or before its own lines."""

    def changed(name: str) -> Answer:
        return answer(*write(tmp_path / name, {"train.log": prefixed(LOGS[name], prefix)}))

    names = [name for name in LOGS if not _HAS_PREFIX.search(LOGS[name])]
    names = [name for name in names if prefix != "pod" or _IS_DATED.fullmatch(LOGS[name])]
    assert len(names) > 20
    assert differing(drawn(names, 3, PREFIXES.index(prefix)), whole, changed) == []


def noise_of(log: bytes) -> Iterator[int]:
    """Yield the indexes of the lines that no rule reads and that have no time."""
    reader = document_reader(RawBatch("train.log", 1, log), None, ReadingOptions())
    text = reader.feed(RawBatch("train.log", 1, log)).text
    if text is None or not any(one.event is not None and one.event.type == "step" for one in text.log_lines):
        return  # rules are inferred from all lines
    used = {one.line for one in text.log_lines} | {one.line for one in text.seen}
    used |= {line for one in text.log_lines if one.inner is not None for line in one.inner.line.tolist()}
    for at, line in enumerate(log.split(b"\n")):
        if at + 1 not in used and not re.search(rb"\d\d:\d\d|rank", line) and re.search(rb"\d", line):
            yield at


def test_digits_of_noise_change_nothing(tmp_path: Path, whole: Callable[[str], Answer]) -> None:
    noisy = {name: found for name in LOGS if (found := list(noise_of(LOGS[name])))}

    def changed(name: str) -> Answer:
        lines = LOGS[name].split(b"\n")
        for at in noisy[name]:
            lines[at] = re.sub(rb"\d", b"7", lines[at])
        return answer(*write(tmp_path / name, {"train.log": b"\n".join(lines)}))

    assert len(noisy) > 5
    assert differing(list(noisy), whole, changed) == []


def begin(log: bytes, lines: int) -> bytes:
    """Return the first lines of a log. States of a bar are lines."""
    return b"".join(log.splitlines(keepends=True)[:lines])


def longer_than_whole(part: Answer, complete: Answer) -> str:
    """Return what the begin of a log has more than all of it."""
    if part.attempts > complete.attempts:
        return f"attempts {part.attempts} > {complete.attempts}"
    done, all_done = part.kept + part.wasted, complete.kept + complete.wasted
    return f"steps {done} > {all_done}" if done > all_done else ""


NEXT_EPOCH = "a line that recurs after a full epoch is read as a start until a step follows"
OTHER_PROCESS = "bars that follow each other are epochs until a later line shows that other processes drew them"
LONGER_CUTS = {
    "lines-before-first-step-recur-at-each-epoch": (11, NEXT_EPOCH),
    "failed-upload-at-the-end-of-an-epoch": (12, NEXT_EPOCH),
    "epoch-bars-of-two-nodes-follow-each-other": (14, OTHER_PROCESS),
    "bars-of-two-nodes-follow-each-other": (16, OTHER_PROCESS),
    "bars-of-five-nodes-follow-each-other": (40, OTHER_PROCESS),
    "trials-are-numbered-at-their-end": (8, "a number of trials is a counter only from its second line on"),
    "bar-of-batches-inside-a-bar-of-epochs": (6, "steps are batches until the outer bar has a second state"),
}
"""Number of lines at which a log shows more than all of it, and the reason."""


def test_begin_of_a_log_has_no_more_attempts_and_steps(tmp_path: Path, whole: Callable[[str], Answer]) -> None:
    """A log that ends at any line, as while its job runs. Logs of unknown goodput are left out, and those of several
    runs: only the last one is analyzed."""
    found = []
    for name in drawn(LOGS, 4, 1):
        complete = whole(name)
        if complete.at_most is None or complete.runs > 1 or name in LONGER_CUTS:
            continue
        at = (0.2, 0.4, 0.6, 0.8)[number_of(name) // 4 % 4]
        part = answer(*write(tmp_path / name, {"train.log": cut(LOGS[name], at)[0]}))
        found += [f"{name}: {more}" for more in [longer_than_whole(part, complete)] if more]
    assert found == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(raises=AssertionError, reason=reason, strict=True))
        for name, (_, reason) in LONGER_CUTS.items()
    ],
)
def test_begin_of_a_log_is_no_longer(name: str, tmp_path: Path, whole: Callable[[str], Answer]) -> None:
    part = answer(*write(tmp_path, {"train.log": begin(LOGS[name], LONGER_CUTS[name][0])}))
    assert longer_than_whole(part, whole(name)) == ""


BLOCK_SIZES = {200: 2, 1000: 3}
"""Sizes of blocks in bytes, and the offsets of their draws."""
KEPT_AT_A_BORDER = "bar-of-other-work-between-two-states"
"""A log whose answer depends on a state of a bar that the border of a block keeps."""


def in_blocks(name: str, size: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Return the answer about a log that is read in blocks of a size."""
    with monkeypatch.context() as patch:
        patch.setattr("goodput_cli.sources.files.BLOCK_BYTES", size)
        return answer(*write(folder / name, {"train.log": LOGS[name]}))


@pytest.mark.parametrize("size", BLOCK_SIZES)
def test_block_size_changes_nothing(
    size: int, tmp_path: Path, whole: Callable[[str], Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [*drawn(STORED, 4, BLOCK_SIZES[size]), KEPT_AT_A_BORDER]
    assert differing(names, whole, lambda name: in_blocks(name, size, tmp_path, monkeypatch)) == []


def test_logs_of_two_jobs_in_one_file_are_sane(tmp_path: Path, whole: Callable[[str], Answer]) -> None:
    """The second log is a week later."""
    wrong = []
    dated = [name for name in LOGS if _IS_DATED.fullmatch(LOGS[name])]
    names = [name for name in dated if set(re.findall(rb"2026-\d\d-\d\d", LOGS[name])) == {b"2026-03-01"}]
    for name, other in zip(names[::4], names[2::4], strict=False):
        both = LOGS[name] + LOGS[other].replace(b"2026-03-01", b"2026-03-09")
        found = answer(*write(tmp_path / name, {"train.log": both}))
        most = (whole(name).attempts + whole(other).attempts, whole(name).kept + whole(other).kept)
        if found.attempts > most[0] or found.kept + found.wasted > most[1] + whole(name).wasted + whole(other).wasted:
            wrong.append((name, other, found, most))
    assert len(names) > 20
    assert wrong == []
