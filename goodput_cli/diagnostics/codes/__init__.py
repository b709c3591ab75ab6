"""Every diagnostic code: how grave it is, what it means, what it does to the numbers, and what to do about it.

The only place that says so, a module a subject: `Diagnostic.of` takes the severity from here and refuses a code
without a row, `goodput check` prints these texts, and docs/diagnostics.md is made of them.
"""

from __future__ import annotations

from goodput_cli.diagnostics.codes.accounting import ACCOUNTING, ADVICE, CLOCKS, COMPARING, COVERAGE, HOSTS
from goodput_cli.diagnostics.codes.code import SEVERITIES, Code, Severity
from goodput_cli.diagnostics.codes.reading import READING, TEXT

__all__ = ["CODES", "SEVERITIES", "Code", "Severity", "code_texts", "severity_of"]

CODES: dict[str, Code] = {**READING, **TEXT, **ACCOUNTING, **CLOCKS, **COVERAGE, **HOSTS, **COMPARING, **ADVICE}
"""Every code, in the order in which docs/diagnostics.md lists them."""

_UNKNOWN = Code("warning", "", "See the message.", "See the documentation of the plug-in that reports it.")


def severity_of(code: str, mild: bool = False) -> Severity:
    """How grave a diagnostic of ours is. mild: a mild case. Raises ValueError for a code that has no row here."""
    if code not in CODES:
        raise ValueError(f"no diagnostic is called {code!r}: a new one needs a row in goodput_cli/diagnostics/codes/")
    return (CODES[code].mild if mild else None) or CODES[code].severity


def code_texts(code: str) -> Code:
    """The texts of a code; a code of a plug-in that is not registered gets neutral ones."""
    return CODES.get(code, _UNKNOWN)
