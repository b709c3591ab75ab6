"""Replacement of `ml_goodput_measurement.monitoring_elastic`."""

from __future__ import annotations

import datetime

from .gcp_options import GCPOptions
from .monitoring import GoodputMonitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ElasticGoodputMonitor", "GCPOptions"]


class ElasticGoodputMonitor(GoodputMonitor):
    """The monitor of a job with a changing number of slices."""

    def __init__(
        self,
        job_name: str,
        logger_name: str,
        tensorboard_dir: str,
        upload_interval: int,
        monitoring_enabled: bool = False,
        include_badput_breakdown: bool = False,
        include_step_deviation: bool = False,
        include_slice_efficiency: bool = False,
        configured_ideal_step_time: Any = None,
        step_deviation_interval_seconds: int = 10,
        gcp_options: GCPOptions = GCPOptions(),  # noqa: B008 - as in the original; it is never changed here
        skip_final_flush: bool = False,
        final_flush_timeout_seconds: float | None = 10,
        gcs_sync_interval_seconds: int = 3600,
        cache_dir: str = "/tmp",
        max_logs_retention_period: datetime.timedelta | None = None,
    ) -> None:
        super().__init__(
            job_name,
            logger_name,
            tensorboard_dir,
            upload_interval,
            monitoring_enabled,
            True,
            include_badput_breakdown,
            include_step_deviation,
            configured_ideal_step_time,
            step_deviation_interval_seconds,
            gcp_options,
            skip_final_flush,
            final_flush_timeout_seconds,
            gcs_sync_interval_seconds,
            cache_dir,
            max_logs_retention_period,
        )
        self._slices = bool(include_slice_efficiency)
