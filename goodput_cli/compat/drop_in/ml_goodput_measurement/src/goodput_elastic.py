"""Replacement of `ml_goodput_measurement.goodput_elastic`."""

from __future__ import annotations

import datetime

from ...of_recorder import PHASE_LINE
from .calculator import ElasticGoodputCalculator
from .recorder import GoodputRecorder

__all__ = ["ElasticGoodputCalculator", "ElasticGoodputRecorder", "GoodputRecorder"]

_WAIT_TYPE = "elastic_wait_event_type"


class ElasticGoodputRecorder(GoodputRecorder):
    """The recorder of a job with a changing number of slices."""

    def record_elastic_slice_counts(
        self,
        active_slices: int,
        total_slices: int,
        available_slices: int,
        timestamp: datetime.datetime | None = None,
    ) -> None:
        """Record slice counts from now on."""
        counts = {"active_slices": active_slices, "total_slices": total_slices, "available_slices": available_slices}
        self._record("elastic_slice_counts_timestamp", timestamp, PHASE_LINE, whole=counts)

    def record_elastic_wait_start_time(self, event_type: str, start_time: datetime.datetime | None = None) -> None:
        """Record that waiting for slices begins."""
        self._record("elastic_wait_start_time", start_time, PHASE_LINE, text={_WAIT_TYPE: event_type})

    def record_elastic_wait_end_time(self, event_type: str, end_time: datetime.datetime | None = None) -> None:
        """Record that waiting for slices ends."""
        self._record("elastic_wait_end_time", end_time, PHASE_LINE, text={_WAIT_TYPE: event_type})

    def record_elastic_reinit_start_time(self, start_time: datetime.datetime | None = None) -> None:
        """Record that setting up again begins."""
        self._record("elastic_reinit_start_time", start_time, PHASE_LINE)

    def record_elastic_reinit_end_time(self, end_time: datetime.datetime | None = None) -> None:
        """Record that setting up again ends."""
        self._record("elastic_reinit_end_time", end_time, PHASE_LINE)
