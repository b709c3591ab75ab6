"""Parse times in the formats that mappings name: a fixed name, or a format of `strptime`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache

from goodput_cli.events.text.line_timestamps import HEAD, PLACEHOLDER_YEAR, Timestamp, Zone, read_dated
from goodput_cli.events.text.log_lines import BadValueError
from goodput_cli.events.values import number, round_to_us
from goodput_cli.vocabulary.text import likeliest
from goodput_cli.vocabulary.when import NS_PER_SECOND

EPOCHS = {"epoch_s": 1.0, "epoch_ms": 1e-3, "epoch_us": 1e-6, "epoch_ns": 1e-9}
NAMED = (*EPOCHS, "iso", "glog")
_MAX_EPOCH = 9e9
_LONGEST = 100
_TRIED = datetime(2026, 11, 22, 21, 43, 56, 123456, tzinfo=UTC)
_PATTERNS = {
    "Y": r"\d{4}", "y": r"\d\d", "m": r"\d{1,2}", "d": r"[ \d]?\d", "H": r"[ \d]?\d", "I": r"[ \d]?\d", "M": r"\d\d",
    "S": r"\d\d", "f": r"\d{1,9}", "p": r"[AaPp]\.?[Mm]\.?", "b": r"[A-Za-z]{3}", "B": r"[A-Za-z]{3,9}",
    "a": r"[A-Za-z]{3}", "A": r"[A-Za-z]{6,9}", "j": r"\d{1,3}", "z": r"(?:Z|UTC|[+-]\d\d:?\d\d)",
    "Z": r"(?:Z|UTC|GMT)", "%": "%",
}  # fmt: skip
_DIRECTIVE = re.compile(r"%(.)", re.DOTALL)
_YEARS, _DAYS = frozenset("Yy"), frozenset("dj")


class ClockError(ValueError):
    """Raised for an unusable time format; args: a sentence."""


def check_format(written: str) -> None:
    """Raise ClockError for a format in which no time can be read."""
    if not written or written in NAMED:
        return
    if "%" not in written:
        named = " or ".join(likeliest(written, NAMED) or NAMED)
        raise ClockError(
            f"`{written[:40]}` is not a time format: write {named}, or a strptime format such as %d/%m/%Y %H:%M:%S"
        )
    if len(written) > _LONGEST:
        raise ClockError(f"a time format has at most {_LONGEST} characters")
    directives = frozenset(_DIRECTIVE.findall(written.replace("%%", "")))
    unknown = sorted(directives - _PATTERNS.keys())
    if unknown or written.replace("%%", "").endswith("%"):
        named = f"%{unknown[0]}" if unknown else "%"
        raise ClockError(f"`{named}` is not supported in a time format; use %Y %m %d %H %M %S %f %z %b %j %p")
    try:
        read_time(_TRIED.strftime(written.replace("%y", "26") if "%Y" in written else written), written)
    except (BadValueError, ValueError) as error:
        raise ClockError(f"`{written}` cannot be read as a time: {error}") from None


def read_time(text: str, written: str) -> Timestamp:
    """Return a time in the given format. Raises BadValueError or TimestampError."""
    if written in EPOCHS or (not written and number(text) is not None):
        return _of_epoch(text, EPOCHS.get(written, 1.0))
    if written in ("", "iso"):
        return read_dated(text)
    if written == "glog":
        return _parsed(f"{text.lstrip('IWEFD')}", "%m%d %H:%M:%S.%f")
    return _parsed(text.strip(), written)


def find_time(line: str, written: str) -> Timestamp | None:
    """Return the time in a `strptime` format at the beginning of a line; None if there is none. Raises BadValueError
    for a month 13."""
    found = pattern_of(written).search(line, 0, HEAD + _LONGEST)
    return None if found is None or found.start() >= HEAD else _parsed(found[0], written)


def is_searched(written: str) -> bool:
    """Return True if lines are searched for times of this format."""
    return "%" in written


@cache
def pattern_of(written: str) -> re.Pattern[str]:
    """Return the pattern of times in a format, without unbounded repeats."""
    parts = [
        _PATTERNS[part[1]] if len(part) == 2 and part[0] == "%" else r"\s{1,3}" if part.isspace() else re.escape(part)
        for part in re.findall(r"%.|\s+|[^%\s]+", written, re.DOTALL)
    ]
    return re.compile(r"(?<!\d)" + "".join(parts) + r"(?!\d)", re.ASCII)


def _of_epoch(text: str, unit: float) -> Timestamp:
    seconds = number(text)
    if seconds is None or not 0 <= seconds < _MAX_EPOCH / unit:  # An integer may have thousands of digits.
        raise BadValueError(f"{text[:40]} is not a time between 1970 and 2255")
    ns = int(seconds) * round(unit * 1e9) if seconds == int(seconds) else round_to_us(seconds * unit)
    return Timestamp(ns, Zone.EXACT, False)


def _parsed(text: str, written: str) -> Timestamp:
    """Return a time in a `strptime` format; without a year, it has the placeholder year."""
    directives = _DIRECTIVE.findall(written.replace("%%", ""))
    dayless = not _DAYS.intersection(directives)
    yearless = not dayless and not _YEARS.intersection(directives)
    read, as_written = text, written
    if "Z" in directives or "z" in directives:
        read = re.sub(r"(?:UTC|GMT|Z)\b", "+0000", read)
        as_written = as_written.replace("%Z", "%z")
    if "f" in directives:
        read = re.sub(r"([.,]\d{6})\d{1,3}(?!\d)", r"\1", read)
    if yearless:
        read, as_written = f"{PLACEHOLDER_YEAR} {read}", f"%Y {as_written}"
    if dayless:
        read, as_written = f"1970-01-01 {read}", f"%Y-%m-%d {as_written}"
    try:
        moment = datetime.strptime(read, as_written)
    except ValueError:
        raise BadValueError(f"{text[:40]} is not a time in the format {written}") from None
    if dayless:
        zone = Zone.DAYLESS
    else:
        zone = Zone.YEARLESS if yearless else Zone.NAIVE if moment.tzinfo is None else Zone.EXACT
    since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.fromtimestamp(0, UTC)
    ns = (since.days * 86_400 + since.seconds) * NS_PER_SECOND + since.microseconds * 1000
    if ns < 0:
        raise BadValueError(f"{text[:40]} is not a time between 1970 and 2255")
    return Timestamp(ns, zone, "f" not in directives)
