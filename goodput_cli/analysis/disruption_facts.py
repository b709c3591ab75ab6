"""All columns of capabilities in the table of disruptions.

The list is apart from that of the hooks, because hooks make tables of disruptions.
"""

from __future__ import annotations

from goodput_cli.analysis.hangs.facts import HANG_FACTS
from goodput_cli.analysis.recovery.facts import RECOVERY_FACTS
from goodput_cli.analysis.row_facts import DisruptionFacts

DISRUPTION_FACTS: tuple[DisruptionFacts, ...] = (RECOVERY_FACTS, HANG_FACTS)
