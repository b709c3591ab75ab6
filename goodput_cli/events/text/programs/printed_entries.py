"""Entries of Cloud Logging as `gcloud logging read` prints them where nobody says otherwise: YAML, which is not read.
What to ask for instead is said of each."""

from __future__ import annotations

from typing import Any

from goodput_cli.events.text.marks import Said
from goodput_cli.events.text.rules import BadValueError, Rule, pattern


def _refuse(_found: Any) -> Said:
    raise BadValueError("an entry printed as YAML: ask gcloud for --format=json")


RULES = (
    Rule("cloud-logging", "jsonPayload:", pattern(r"^jsonPayload:\s*$"), _refuse, "YAML"),
    Rule("cloud-logging", "textPayload:", pattern(r"^textPayload: "), _refuse, "YAML"),
)
