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
    if not lines:
        return None
    return _folded(lines)


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
        yield f"Do: {kind.advice}. `goodput {kind.command}` shows more; --fail-if 'insight:{name}>10m' is a gate."
    named = category_named(name)
    if named is not None:
        category, _ = named
        yield f"category {category.id}: {category.row.meaning}."
        yield f"`goodput timeline LOG --category {category.id}` shows its time; docs/accounting.md has the rule."


def _of_causes(name: str) -> Iterator[str]:
    """Causes, and which there are in a group."""
    from goodput_cli.vocabulary.causes import CAUSES, GROUPS

    cause = CAUSES.get(name)
    if cause is not None:
        yield f"cause {name} ({cause.group}): {cause.says}."
        yield f"Do: {cause.advice}. `goodput disruptions LOG` has the line that says it (docs/causes.md)."
    if name in GROUPS:
        of_group = ", ".join(code for code, row in CAUSES.items() if row.group == name)
        yield f"group {name}: {of_group}."


def _of_words(name: str) -> Iterator[str]:
    from goodput_cli.vocabulary.words import words

    for word, row in words().items():
        if _plain(word) == _plain(name):
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


def _plain(word: str) -> str:
    return word.casefold().replace("\N{MULTIPLICATION SIGN}", "x").replace("-", " ").replace("_", " ")
