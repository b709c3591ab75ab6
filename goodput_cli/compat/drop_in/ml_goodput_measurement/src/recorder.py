"""`GoodputRecorder`. It has no `record_step_end_time` and no `__getattr__`: MaxText and axlearn look for an end of
every event, and would call a step's end long before the step has ended."""

from __future__ import annotations

import os

from ...of_recorder import (
    LOADING,
    PHASE_LINE,
    SPARE,
    STEP_LINE,
    VITAL,
    WRITER,
    Clock,
    Heartbeat,
    Writer,
    check,
    epoch_seconds,
    known_project,
    microseconds,
    print_to_stderr,
    split,
    variable,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import datetime
    from collections.abc import Mapping
    from typing import Any

_CUSTOM_TYPE = "custom_badput_event_type"
_HEARTBEAT_SECONDS = 60.0


class GoodputRecorder:
    """Recorder of the events of a job, in one process. No method ever raises.

    Lines go to GOODPUT_RECORDER_TO, otherwise to a file in GOODPUT_RECORDER_DIR (./goodput-logs) and, if a Google Cloud
    project is known, to the log `logger_name` of Cloud Logging. cloud_logger: an object whose
    `write_cloud_logging_entry` gets every entry instead. background_…: seconds for delivery at the end, the number of
    entries that is sent without waiting, and the seconds that they wait for a batch.
    """

    def __init__(
        self,
        job_name: str,
        logger_name: str,
        logging_enabled: Any = False,
        cloud_logger: Any = None,
        *,
        background_grace_period_s: float = 5.0,
        background_batch_size: int = 100,
        background_max_latency_s: float = 2.0,
    ) -> None:
        self.job_name = job_name
        self._cloud_logger: Any = None
        self._writer: Writer | None = None
        self._heart: Heartbeat | None = None
        self._extra = bool(variable("EXTRA"))
        self._warned: set[str] = set()
        if not logging_enabled:
            return
        if cloud_logger is not None:
            self._clock = Clock()
            self._cloud_logger = cloud_logger
            return
        try:
            self._writer = _open(
                str(job_name),
                str(logger_name),
                grace=float(background_grace_period_s),
                batch_lines=int(background_batch_size),
                latency=float(background_max_latency_s),
            )
            self._cloud_logger = self._writer
        except Exception as error:
            self._warn(f"nothing is recorded ({type(error).__name__}: {error})")

    def flush(self) -> None:
        """Wait until all lines are delivered, at most `background_grace_period_s`."""
        try:
            if self._writer is not None:
                self._writer.flush()
            elif hasattr(self._cloud_logger, "flush"):
                self._cloud_logger.flush()
        except Exception as error:
            self._warn(f"flush failed ({type(error).__name__})")

    def record_step_start_time(self, step: int, start_time: datetime.datetime | None = None) -> None:
        """Record that a step begins."""
        self._record("step_start_time", start_time, STEP_LINE, whole={"step_count": step})

    def record_checkpoint_progress(self, step: Any, checkpoint_start_time: Any) -> None:
        """Do nothing, as in the original."""

    def record_job_start_time(self, start_time: datetime.datetime | None = None) -> None:
        """Record that the job begins."""
        self._record("job_start_time", start_time, VITAL)

    def record_job_end_time(self, end_time: datetime.datetime | None = None) -> None:
        """Record that the job ends."""
        self._record("job_end_time", end_time, VITAL)

    def record_tpu_init_start_time(self, start_time: datetime.datetime | None = None) -> None:
        """Record that accelerator initialization begins."""
        self._record("tpu_init_start_time", start_time, PHASE_LINE)

    def record_tpu_init_end_time(self, end_time: datetime.datetime | None = None) -> None:
        """Record that accelerator initialization ends."""
        self._record("tpu_init_end_time", end_time, PHASE_LINE)

    def record_training_preparation_start_time(self, start_time: datetime.datetime | None = None) -> None:
        """Record that training preparation begins."""
        self._record("training_prep_start_time", start_time, PHASE_LINE)

    def record_training_preparation_end_time(self, end_time: datetime.datetime | None = None) -> None:
        """Record that training preparation ends."""
        self._record("training_prep_end_time", end_time, PHASE_LINE)

    def record_data_loading_start_time(self, start_time: datetime.datetime | None = None) -> None:
        """Record that data loading begins."""
        self._record("data_loading_start_time", start_time, LOADING)

    def record_data_loading_end_time(self, end_time: datetime.datetime | None = None) -> None:
        """Record that data loading ends."""
        self._record("data_loading_end_time", end_time, LOADING)

    def record_custom_badput_event_start_time(
        self, start_time: datetime.datetime | None = None, custom_badput_event_type: str = "unknown"
    ) -> None:
        """Record that a custom blocking event begins."""
        self._record(
            "custom_badput_event_start_time", start_time, PHASE_LINE, text={_CUSTOM_TYPE: custom_badput_event_type}
        )

    def record_custom_badput_event_end_time(
        self, end_time: datetime.datetime | None = None, custom_badput_event_type: str = "unknown"
    ) -> None:
        """Record that a custom blocking event ends."""
        self._record(
            "custom_badput_event_end_time", end_time, PHASE_LINE, text={_CUSTOM_TYPE: custom_badput_event_type}
        )

    def _record(
        self,
        key: str,
        time: object,
        kind: int,
        whole: Mapping[str, Any] | None = None,
        text: Mapping[str, str] | None = None,
    ) -> None:
        """Write a line: whole numbers or texts, then the time."""
        if self._cloud_logger is None:
            return
        try:
            fields: dict[str, Any] = (
                {name: int(number) for name, number in whole.items()} if whole else dict(text or ())
            )
            us = self._time_us(time)
            if self._writer is not None:
                self._write(self._writer, fields, key, kind, us)
            else:
                entry = {"job_name": self.job_name, **fields, key: us / 10**6}
                self._cloud_logger.write_cloud_logging_entry(entry)
        except Exception as error:
            self._warn(f"{key} is not recorded ({type(error).__name__})")

    def _write(self, writer: Writer, fields: dict[str, Any], key: str, kind: int, us: int) -> None:
        if self._extra:
            self._extra = False
            who = {"pid": os.getpid(), "writer": WRITER}
            writer.write(writer.lines.native("attempt", us, {"run_id": writer.run_id, **who}), VITAL, us)
            self._heart = Heartbeat(_HEARTBEAT_SECONDS, lambda: 0, lambda: _beat(writer))
        if kind == STEP_LINE:
            line = writer.lines.step(fields["step_count"], us)
        else:
            line = writer.lines.record({**fields, key: epoch_seconds(us)})
        writer.write(line, kind, us)

    def _time_us(self, given: object) -> int:
        if given is not None:
            us = microseconds(given)
            if us is not None:
                return us
            self._warn(f"{type(given).__name__} is not a time; the time of the call is recorded")
        return self._writer.now_us() if self._writer is not None else (self._clock() + 500) // 1000

    def _warn(self, sentence: str) -> None:
        if sentence not in self._warned:
            self._warned.add(sentence)
            print_to_stderr(sentence)


def _beat(writer: Writer) -> None:
    us = writer.now_us()
    writer.write(writer.lines.native("heartbeat", us, {"run_id": writer.run_id}), SPARE, us)


def _open(job_name: str, logger_name: str, **options: Any) -> Writer:
    targets = []
    for target in split(None):
        try:
            check(target)
            targets.append(target)
        except ValueError as error:
            print_to_stderr(str(error))
    if targets:
        return Writer(job_name, targets, log_id=logger_name, **options)
    project = known_project()
    if project is None:
        print_to_stderr("no Google Cloud project found: the log is written to a file only")
        return Writer(job_name, [], log_id=logger_name, **options)
    return Writer(job_name, [], also=[f"cloud-logging://{project}/{logger_name}"], **options)
