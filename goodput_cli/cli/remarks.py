"""What a command says on standard error beside its answer: composed here, in one order, by how much is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from goodput_cli.diagnostics.diagnostic import Diagnostic
from goodput_cli.report.messages import diagnostic_lines, explaining_line, strict_lines


@dataclass(frozen=True)
class Verbosity:
    """How much to say."""

    quiet: bool = False
    """Only what fails the run."""
    verbose: bool = False
    """Every place of every diagnostic."""
    strict: bool = False
    """What looks wrong fails the run."""


class Once:
    """Lets each diagnostic through once: an answer that is given again and again finds the same ones."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()

    def new(self, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
        """Those that were not there before."""
        new = [one for one in diagnostics if (one.code, one.message) not in self._known]
        self._known.update((one.code, one.message) for one in new)
        return new


def remarks(
    volume: Verbosity,
    diagnostics: Sequence[Diagnostic],
    cautions: Iterable[str] = (),
    thresholds: Callable[[bool], Iterable[str]] = lambda _: (),
) -> Iterator[str]:
    """Diagnostics, cautions about how thresholds are judged, and the thresholds, each as lines that are safe to show.

    thresholds: the lines of them, called with whether those that passed are said too.
    """
    if not volume.quiet:
        yield from diagnostic_lines(diagnostics, every_place=volume.verbose)
        yield from explaining_line(diagnostics)
        yield from cautions
    yield from strict_lines(diagnostics, quiet=volume.quiet) if volume.strict else ()
    yield from thresholds(not volume.quiet)
