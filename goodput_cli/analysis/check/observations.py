"""What was seen of deaths in a log, as `goodput check` lists it: every observation for programs, one row a kind for
people."""

from __future__ import annotations

from collections.abc import Sequence

from goodput_cli.analysis.sheet import Audience, Column, Sheet
from goodput_cli.analysis.table import Table, attribute, each
from goodput_cli.events.observations import Observation
from goodput_cli.vocabulary.causes import CAUSES, PEER_LOST, ROLES
from goodput_cli.vocabulary.text import plural

_NUMBERS = {"type": "array", "items": {"type": "integer"}}
OBSERVATIONS = Table(
    "observation",
    "one recognised line or block about a death (docs/causes.md); it changes no number",
    (
        Column(
            "code", "text", values=attribute("code"), words="a cause, or peer_lost: somebody else is gone",
            json={"enum": [*CAUSES, PEER_LOST]},
        ),
        Column(
            "role", "text", values=attribute("role"),
            words="root: a mechanism; exit: how a process ended; echo: that others are gone; teardown: said while "
            "being killed; context: ends nothing", json={"enum": list(ROLES)},
        ),
        Column("count", "count", values=attribute("count"), words="how many lines say the same", least=1),
        Column("rank", "count", values=attribute("rank"), words="null: not said", nullable=True),
        Column("local_rank", "count", Audience.JSON, attribute("local_rank"), "null: not said", nullable=True),
        Column(
            "ranks", "text", Audience.JSON, attribute("ranks"), "all ranks that say the same", json=_NUMBERS,
            json_values=each(lambda one: sorted({rank for rank, _ in one.ranks})),
        ),
        Column("host", "text", Audience.PROGRAMS, each(lambda one: one.host or None), "null: not said", nullable=True),
        Column(
            "device", "text", Audience.PROGRAMS, each(lambda one: one.device or None), "null: not said", nullable=True
        ),
        Column("pid", "count", Audience.JSON, attribute("pid"), "null: not said", nullable=True),
        Column("exit", "count", Audience.JSON, attribute("exit"), "exit code; below 0: a signal", nullable=True),
        Column("peer", "text", Audience.JSON, each(lambda one: one.peer or None), "null: not said", nullable=True),
        Column(
            "suspects", "text", Audience.JSON, attribute("suspects"), "ranks that were waited for", json=_NUMBERS,
            json_values=each(lambda one: list(one.suspects)),
        ),
        Column("row", "text", Audience.JSON, attribute("row"), "the row that read it"),
        Column("where", "text", values=attribute("where"), words="file:line of the first"),
        Column("text", "text", Audience.PROGRAMS, attribute("text"), words="the line, without prefix and secrets"),
    ),
)  # fmt: skip
_MOST, _QUOTED = 40, 5


def observations_sheet(observations: Sequence[Observation]) -> Sheet:
    """The observations of a log as people see them: the first of many."""
    columns = OBSERVATIONS.people_columns()
    shown = observations[:_MOST]
    more = len(observations) - len(shown)
    rest = (f"{more} more are in the JSON",) if more else ()
    return Sheet(
        title=f"What lines say about deaths: {plural(len(observations), 'observation')}",
        columns=columns,
        rows=OBSERVATIONS.of_rows(shown).cells(columns),
        notes=(*(f"{one.where}: `{one.text}`" for one in shown[:_QUOTED]), *rest),
    )
