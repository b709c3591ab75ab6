"""`goodput help WORD`: what is declared of a word, in paragraphs; and what may have been meant by another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import fill

from goodput_cli.vocabulary.text import did_you_mean

_WIDTH = 79
FORMATS = "formats"
"""What lists the programs whose logs are read."""
KINDS = "words"
"""What lists the words of which there is help, by kind."""
_MARK, _MARKED = "?", "likely"
"""What stands behind a cause that is only likely."""


def explain(name: str, commands: Iterable[str] = ()) -> str | None:
    """Some paragraphs on a name; None where it is the name of nothing. commands: those there are."""
    asked = name.strip().lower()
    if asked == KINDS:
        return _folded(f"{kind}: {', '.join(names)}" for kind, names in _kinds(commands).items())
    if asked == FORMATS:
        from goodput_cli.vocabulary.programs import program_lines

        return "\n".join(program_lines())
    asked = _MARKED if asked == _MARK else asked
    lines = [*_of_findings(asked), *_of_causes(asked), *_of_words(asked), *_of_programs(asked)]
    lines = lines or list(_of_kind(asked, commands)) or list(_of_columns(asked))
    return _folded(lines) if lines else None


def suggestion(name: str, commands: Iterable[str]) -> str:
    """What may have been meant, as a question; empty where nothing is like it. commands: those there are."""
    return did_you_mean(name, (FORMATS, KINDS, *(one for names in _kinds(commands).values() for one in names)))


def word_meant(name: str) -> str:
    """Which word may have been meant by what was typed in the place of a command, as a question; empty for none. Loads
    nothing large: insights are left out."""
    from goodput_cli.diagnostics.diagnostic import CODES
    from goodput_cli.vocabulary.causes import CAUSES
    from goodput_cli.vocabulary.words import WORDS

    return did_you_mean(name, (FORMATS, KINDS, *CODES, *CAUSES, *WORDS))


def _kinds(commands: Iterable[str]) -> dict[str, list[str]]:
    """All names of which there is help, by kind."""
    from goodput_cli.analysis.insights.kinds import BY_CODE
    from goodput_cli.diagnostics.diagnostic import CODES
    from goodput_cli.vocabulary.categories import NAMES
    from goodput_cli.vocabulary.causes import CAUSES, GROUPS
    from goodput_cli.vocabulary.programs import PROGRAMS
    from goodput_cli.vocabulary.words import words

    return {
        "commands": list(commands),
        "categories": list(NAMES),
        "insights": list(BY_CODE),
        "diagnostics": list(CODES),
        "causes": list(CAUSES),
        "groups of causes": list(GROUPS),
        "formats": list(dict.fromkeys(name for program in PROGRAMS for name in program.formats)),
        "words of answers": list(words()),
    }


def _folded(lines: Iterable[str]) -> str:
    return "\n".join(fill(line, _WIDTH, subsequent_indent="  ", break_long_words=False) for line in lines)


def _of_findings(name: str) -> Iterator[str]:
    """Diagnostics, insights and categories."""
    from goodput_cli.analysis.insights.kinds import BY_CODE
    from goodput_cli.diagnostics.diagnostic import CODES
    from goodput_cli.vocabulary.categories import category_named

    code = CODES.get(name)
    if code is not None:
        yield f"{name} ({code.severity}{f', {code.mild} in mild cases' if code.mild else ''}): {code.meaning}"
        yield f"Effect: {code.effect}"
        yield f"Do: {' '.join(code.advices)}"
    if name in BY_CODE:
        kind = BY_CODE[name]
        yield f"insight {name}, {kind.title}: {kind.meaning}"
        yield f"Least: {kind.least_percent:g} % of the window; from: {kind.origin}."
        advice = f"{kind.advice}. " if kind.advice else ""
        yield f"Do: {advice}`goodput {kind.command}` shows more; --fail-if 'insight:{name}>10m' is a gate."
    named = category_named(name)
    if named is not None:
        category, _ = named
        yield f"category {category.id}: {category.row.meaning}."
        yield f"`goodput timeline LOG --category {category.id}` shows its time; docs/accounting.md has the rule."


def _of_causes(name: str) -> Iterator[str]:
    """Causes, and which there are in a group."""
    from goodput_cli.vocabulary.causes import CAUSES, GROUPS, UNKNOWN_CAUSE

    cause = CAUSES.get(name)
    if cause is not None:
        yield f"cause {name} ({cause.group}): {cause.says}."
        has = "what was seen" if name == UNKNOWN_CAUSE else "the line that says it"
        yield f"Do: {cause.advice}. `goodput disruptions LOG` has {has} (docs/causes.md)."
    if name in GROUPS:
        of_group = ", ".join(code for code, row in CAUSES.items() if row.group == name)
        yield f"group {name}: {of_group}."


def _of_words(name: str) -> Iterator[str]:
    from goodput_cli.vocabulary.words import others, words

    alike = {_plain(one): word for one, word in others().items()}
    for word, row in words().items():
        if _plain(word) == _plain(alike.get(_plain(name), name)):
            yield f"{word}: {row.means}."
            yield from (f"Found: {row.found}.",) if row.found else ()
            yield from (f"It is {row.isnt}.",) if row.isnt else ()
            yield from (f"`{row.next}` shows it.",) if row.next else ()


def _of_programs(name: str) -> Iterator[str]:
    """Formats, by the names that answers have for them."""
    from goodput_cli.vocabulary.programs import PROGRAMS

    for program in PROGRAMS:
        if name in program.formats:
            lacks = f"; such a log does not show {program.unknown}" if program.unknown else ""
            yield f"format {name}, of {program.name.strip()}: `{program.command}`{lacks}."


def _of_kind(name: str, commands: Iterable[str]) -> Iterator[str]:
    """All names of a kind."""
    names = _kinds(commands).get(name)
    if names is not None:
        yield f"{name}: {', '.join(names)}"


def _of_columns(name: str) -> Iterator[str]:
    """Columns of tables, by the headings that people read."""
    from importlib import import_module

    from goodput_cli.analysis.table import Table

    found: dict[str, str] = {}
    for module, command in _TABLES.items():
        for table in vars(import_module(f"goodput_cli.{module}")).values():
            for one in table.columns if isinstance(table, Table) else ():
                if _plain(name) in (_plain(one.heading), _plain(one.name)) and one.words:
                    found.setdefault(one.words, command)
    for words, command in found.items():
        yield f"column {name}: {words} (`goodput {command}`)."


_TABLES = {
    "analysis.disruptions.rows": "disruptions LOG",
    "analysis.disruptions.recovery": "disruptions LOG",
    "analysis.disruptions.links": "disruptions LOG --by link",
    "analysis.disruptions.costs": "disruptions LOG --by attempt",
    "analysis.steps.sheet": "steps LOG",
    "analysis.steps.inside": "steps LOG",
    "analysis.steps.regimes": "steps LOG",
    "analysis.steps.devices": "steps LOG --by device",
    "analysis.timeline.rows": "timeline LOG",
    "analysis.rolling": "rolling LOG",
    "analysis.jobs": "jobs LOGS",
    "analysis.check": "check LOG",
    "analysis.processes": "check LOG",
    "analysis.advice.results": "advise LOG",
    "fleet.rows": "fleet LOGS",
    "fleet.recovery": "fleet LOGS",
    "fleet.held": "fleet sacct.txt",
}
"""Where tables are declared, and the command that shows them."""


def _plain(word: str) -> str:
    return word.casefold().replace("\N{MULTIPLICATION SIGN}", "x").replace("-", " ").replace("_", " ")
