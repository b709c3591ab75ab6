"""`goodput_utils.GCPOptions`."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class GCPOptions:
    """Destinations of a monitor."""

    project_id: str | None = None
    location: str | None = None
    replica_id: str = "0"
    acc_type: str | None = None
    cluster_name: str | None = None
    enable_gcp_goodput_metrics: bool = True
    enable_gcp_step_deviation_metrics: bool = True
