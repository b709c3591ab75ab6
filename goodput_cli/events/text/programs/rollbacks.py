"""Read lines in which a program returns to an earlier step itself, for example after a loss spike."""

from __future__ import annotations

from typing import Any

from goodput_cli.events.text.log_lines import EventType, LineRule, ParsedEvent, pattern, whole

NAME = "rollback"
_WORDS = pattern(
    r"\b(?:[Rr]oll(?:ing|ed|s)?[ _-]?[Bb]ack|[Rr]evert(?:ing|ed|s)?)\b"
    r".{0,80}?\b(?:step|iteration|iter|checkpoint|ckpt|state|weights|snapshot)"
    r"(?:[^\d\n]{0,40}?[ =:#_-](?P<step>\d{1,15})(?!\d))?"
)


def _read(found: Any) -> ParsedEvent:
    step = found["step"]
    return ParsedEvent(NAME, EventType.ROLLBACK, None if step is None else whole(step))


RULES = tuple(
    LineRule(NAME, anchor, _WORDS, _read, "rollback", also=True)
    for anchor in ("rolling back", "Rolling back", "rolled back", "Rolled back", "everting", "everted")
)
