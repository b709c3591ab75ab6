"""`goodput help WORD`: the declared meaning of a word, in paragraphs; and suggestions for an unknown word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import fill

from goodput_cli.vocabulary.text import did_you_mean

_WIDTH = 79
FORMATS = "formats"
"""Lists the programs whose logs goodput reads."""
KINDS = "words"
"""Lists all words that have help, by kind."""
_MARK, _MARKED = "?", "likely"
"""The mark of a likely cause, and its word."""
_GATES = (
    "Gates: options that check an answer and set the exit code.",
    "--fail-under 85: exit with 3 if goodput is below 85 %.",
    "--fail-if EXPR: exit with 3 if EXPR is true. --warn-if EXPR: print a warning instead.",
    "EXPR is NAME OP VALUE[UNIT], for example 'goodput<85', 'step_stall>5%' or 'mttr>10m'.",
    "NAME is goodput, a category, evaluation, custom:LABEL, insight:CODE or a measure such as disruptions or mtbf.",
    "OP is <, <=, >, >=, == or !=. UNIT is %, s, m, h or d.",
    "In `goodput compare`, EXPR is NAME:CHANGE[UNIT], for example 'goodput:-2pp' or 'steps.p99:+10%'.",
    "If the log does not record a value, its gate is inconclusive (exit code 4).",
    "docs/cli.md lists all names; `goodput help exit-codes` lists the exit codes.",
)
_EXIT_CODES = (
    "Exit codes:",
    "  0  success",
    "  1  failure, for example a file that cannot be read",
    "  2  wrong usage",
    "  3  a gate failed (`goodput help gates`)",
    "  4  inconclusive: no events, no such job, or a gate whose value is unknown",
    "  5  --strict or `goodput check` found problems",
    "130  interrupted",
)
TOPICS = {"gates": _GATES, "exit-codes": _EXIT_CODES}
"""Help on topics that are not a single word, by name."""
_TOPIC_NAMES = {
    "gate": "gates", "threshold": "gates", "thresholds": "gates", "fail if": "gates", "fail under": "gates",
    "warn if": "gates", "exit codes": "exit-codes", "exit code": "exit-codes", "exitcodes": "exit-codes",
}  # fmt: skip


def explain(name: str, commands: Iterable[str] = ()) -> str | None:
    """Return some paragraphs on a name, or None for an unknown name. commands: all command names."""
    asked = name.strip().lower()
    if asked == KINDS:
        return _folded(f"{kind}: {', '.join(names)}" for kind, names in _kinds(commands).items())
    if asked == FORMATS:
        from goodput_cli.vocabulary.programs import program_lines

        return "\n".join(program_lines())
    topic = _TOPIC_NAMES.get(_plain(asked).strip(), asked)
    if topic in TOPICS:
        return _folded(TOPICS[topic])
    asked = _MARKED if asked == _MARK else asked
    lines = [*_of_findings(asked), *_of_causes(asked), *_of_words(asked), *_of_programs(asked)]
    lines = lines or list(_of_kind(asked, commands)) or list(_of_columns(asked))
    return _folded(lines) if lines else None


def suggestion(name: str, commands: Iterable[str]) -> str:
    """Return a question that suggests similar names; empty if there are none. commands: all command names."""
    return did_you_mean(name, (FORMATS, KINDS, *(one for names in _kinds(commands).values() for one in names)))


def has_help(name: str) -> bool:
    """Return True if `goodput help` explains this word. Insights are left out, because they take long to load."""
    from goodput_cli.diagnostics.diagnostic import CODES
    from goodput_cli.vocabulary.categories import CAUSES
    from goodput_cli.vocabulary.programs import WORDS

    asked = name.strip().lower()
    names = {FORMATS, KINDS, *TOPICS, *_TOPIC_NAMES, *CODES, *CAUSES, *(word.lower() for word in WORDS)}
    return not names.isdisjoint({asked, _plain(asked).strip()})


def word_meant(name: str) -> str:
    """Return a question that suggests similar words for an unknown command; empty if there are none.

    Insights are left out, because they take long to load.
    """
    from goodput_cli.diagnostics.diagnostic import CODES
    from goodput_cli.vocabulary.categories import CAUSES
    from goodput_cli.vocabulary.programs import WORDS

    return did_you_mean(name, (FORMATS, KINDS, *TOPICS, *CODES, *CAUSES, *WORDS))


def _kinds(commands: Iterable[str]) -> dict[str, list[str]]:
    """Return all names that have help, by kind."""
    from goodput_cli.analysis.insights.kinds import BY_CODE
    from goodput_cli.diagnostics.diagnostic import CODES
    from goodput_cli.vocabulary.categories import CAUSES, GROUPS, NAMES
    from goodput_cli.vocabulary.programs import PROGRAMS, words

    return {
        "commands": list(commands),
        "topics": list(TOPICS),
        "categories": list(NAMES),
        "insights": list(BY_CODE),
        "diagnostics": list(CODES),
        "causes": list(CAUSES),
        "groups of causes": list(GROUPS),
        "formats": list(dict.fromkeys(name for program in PROGRAMS for name in program.formats)),
        "words": list(words()),
    }


def _folded(lines: Iterable[str]) -> str:
    return "\n".join(fill(line, _WIDTH, subsequent_indent="  ", break_long_words=False) for line in lines)


def _of_findings(name: str) -> Iterator[str]:
    """Yield help on a diagnostic, an insight and a category of this name."""
    from goodput_cli.analysis.insights.kinds import BY_CODE
    from goodput_cli.diagnostics.diagnostic import CODES
    from goodput_cli.vocabulary.categories import category_named, full_name, short_title

    code = CODES.get(name)
    if code is not None:
        yield f"{name} ({code.severity}{f', {code.mild} in mild cases' if code.mild else ''}): {code.meaning}"
        yield f"Effect: {code.effect}"
        yield f"What to do: {' '.join(code.advices)}"
    if name in BY_CODE:
        kind = BY_CODE[name]
        yield f"insight {name}, {kind.title}: {kind.meaning}"
        yield f"Reported from {kind.least_percent:g} % of the window on ({kind.origin})."
        if kind.advice:
            yield f"What to do: {kind.advice}."
        yield f"Details: `goodput {kind.command}`. Gate: --fail-if 'insight:{name}>10m'"
    named = category_named(name)
    if named is not None:
        category, label = named
        shown = category.id if label is None else short_title(category.id, label)
        yield f"category {full_name(category.id, label)}: {category.row.meaning}."
        yield f"Details: `goodput timeline LOG --category {shown}`. Rule: docs/accounting.md"


def _of_causes(name: str) -> Iterator[str]:
    """Yield help on a cause, or the causes of a group."""
    from goodput_cli.vocabulary.categories import CAUSES, GROUPS, UNKNOWN_CAUSE

    cause = CAUSES.get(name)
    if cause is not None:
        yield f"cause {name} ({cause.group}). Log lines: {cause.says}."
        yield f"What to do: {cause.advice}."
        yield from _patterns(name) if name != UNKNOWN_CAUSE else ()
        yield "Details: `goodput disruptions LOG` shows the log lines (docs/causes.md)."
    if name in GROUPS:
        of_group = ", ".join(code for code, row in CAUSES.items() if row.group == name)
        yield f"group {name}: {of_group}."


def _patterns(cause: str) -> Iterator[str]:
    """Yield the patterns of log lines that show a cause, by the kind of program that prints them."""
    from goodput_cli.events.text.causes import shipped_rows

    patterns: dict[str, list[str]] = {}
    for row in shipped_rows().rows:
        if cause in (row.code, row.before_steps, *(code for code, _ in row.values.values())):
            found = [f"`{anchor}`{' ?' * row.likely}" for anchor in row.anchors] or ["raised exceptions"]
            patterns.setdefault(row.speaker, []).extend(found)
    for speaker, found in patterns.items():
        yield f"Patterns ({speaker}): {', '.join(dict.fromkeys(found))}."


def _of_words(name: str) -> Iterator[str]:
    from goodput_cli.vocabulary.programs import others, words

    alike = {_plain(one): word for one, word in others().items()}
    for word, row in words().items():
        if _plain(word) == _plain(alike.get(_plain(name), name)):
            yield f"{word}: {row.means}."
            yield from (f"From: {row.found}.",) if row.found else ()
            yield from (row.isnt,) if row.isnt else ()
            yield from (f"Details: `{row.next}`",) if row.next else ()


def _of_programs(name: str) -> Iterator[str]:
    """Yield help on a log format."""
    from goodput_cli.vocabulary.programs import PROGRAMS

    for program in PROGRAMS:
        if name in program.formats:
            yield f"format {name}: logs of {program.name.strip()}. Command: `{program.command}`"
            yield from (f"Such a log does not record: {program.unknown}.",) if program.unknown else ()


def _of_kind(name: str, commands: Iterable[str]) -> Iterator[str]:
    """Yield all names of a kind."""
    names = _kinds(commands).get(name)
    if names is not None:
        yield f"{name}: {', '.join(names)}"


def _of_columns(name: str) -> Iterator[str]:
    """Yield help on table columns with this heading."""
    from importlib import import_module

    from goodput_cli.analysis.table import TableDeclaration

    found: dict[str, str] = {}
    for module, command in _TABLES.items():
        for table in vars(import_module(f"goodput_cli.{module}")).values():
            for one in table.columns if isinstance(table, TableDeclaration) else ():
                if _plain(name) in (_plain(one.heading), _plain(one.name)) and one.words:
                    found.setdefault(one.words, command)
    for words, command in found.items():
        yield f"column {name}: {words} (`goodput {command}`)."


_TABLES = {
    "analysis.disruptions.rows": "disruptions LOG",
    "analysis.recovery.columns": "disruptions LOG",
    "analysis.recovery.links": "disruptions LOG --by link",
    "analysis.disruptions.costs": "disruptions LOG --by attempt",
    "analysis.steps.sheet": "steps LOG",
    "analysis.step_breakdown.breakdown": "steps LOG",
    "analysis.steps.regimes": "steps LOG",
    "analysis.accelerators.devices": "steps LOG --by device",
    "analysis.timeline.rows": "timeline LOG",
    "analysis.rolling": "rolling LOG",
    "analysis.jobs": "jobs LOGS",
    "analysis.check": "check LOG",
    "analysis.advice.results": "advise LOG",
    "fleet.rows": "fleet LOGS",
    "fleet.recovery": "fleet LOGS",
    "fleet.held": "fleet sacct.txt",
}
"""For each module that declares tables, the command that shows them."""


def _plain(word: str) -> str:
    return word.casefold().replace("\N{MULTIPLICATION SIGN}", "x").replace("-", " ").replace("_", " ")
