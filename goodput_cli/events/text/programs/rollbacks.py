"""Lines in which a program says that it goes back to an earlier step itself, as after a spike of the loss."""

from __future__ import annotations

from goodput_cli.events.text.log_lines import EventType, LineRule, ParsedEvent, pattern

NAME = "rollback"
_WORDS = pattern(
    r"\b(?:[Rr]oll(?:ing|ed|s)?[ _-]?[Bb]ack|[Rr]evert(?:ing|ed|s)?)\b"
    r".{0,80}?\b(?:step|iteration|iter|checkpoint|ckpt|state|weights|snapshot)"
)

RULES = tuple(
    LineRule(NAME, anchor, _WORDS, lambda _: ParsedEvent(NAME, EventType.ROLLBACK), "rollback", also=True)
    for anchor in ("rolling back", "Rolling back", "rolled back", "Rolled back", "everting", "everted")
)
