"""The recovery chain of each disruption, and its columns."""

from __future__ import annotations

from collections.abc import Sequence

from goodput_cli.accounting.build import Timeline
from goodput_cli.analysis.disruptions.costs import AttemptCosts
from goodput_cli.analysis.recovery.chain import chains_of
from goodput_cli.analysis.recovery.columns import CHAIN_COLUMNS, Chains
from goodput_cli.analysis.row_facts import DisruptionFacts


def _chains(timeline: Timeline, costs: AttemptCosts, attempts: Sequence[int]) -> Chains:
    chain_of = {one.ended: one for one in chains_of(timeline, costs=costs)}
    return tuple(map(chain_of.get, attempts))


RECOVERY_FACTS = DisruptionFacts(name="recovery", columns=CHAIN_COLUMNS, of=_chains)
