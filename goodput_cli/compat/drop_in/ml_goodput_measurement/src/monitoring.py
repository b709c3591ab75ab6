"""Replacement of `ml_goodput_measurement.monitoring`: `goodput monitor` in a process that is started by exec."""

from __future__ import annotations

import datetime
import os

from ...of_recorder import default_folder, in_path, known_project, path_of, print_to_stderr, split
from .calculator import source_of
from .gcp_options import GCPOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# as in `of_recorder`, but only here, because this module starts processes
if TYPE_CHECKING or __name__.startswith("goodput_cli."):
    from goodput_cli.record.monitors import MonitorProcess, window_arguments
else:
    from ....monitors import MonitorProcess, window_arguments

__all__ = ["GCPOptions", "GoodputMonitor"]

_GOODPUT, _DEVIATION, _WINDOWS = "goodput", "step deviation", "rolling windows"


class GoodputMonitor:
    """Monitor that publishes goodput in TensorBoard and Cloud Monitoring while the job runs. No method raises.

    One process sends everything. It is restarted to send more. A stopped upload ends with the process if others
    continue. pathway_enabled, gcs_sync_interval_seconds and cache_dir are accepted and ignored.
    """

    _slices = False

    def __init__(
        self,
        job_name: str,
        logger_name: str,
        tensorboard_dir: str,
        upload_interval: int,
        monitoring_enabled: bool = False,
        pathway_enabled: bool = False,
        include_badput_breakdown: Any = False,
        include_step_deviation: Any = False,
        configured_ideal_step_time: Any = None,
        step_deviation_interval_seconds: Any = 10,
        gcp_options: GCPOptions = GCPOptions(),  # noqa: B008 - the original's default; it is never changed here
        skip_final_flush: bool = False,
        final_flush_timeout_seconds: float | None = 10,
        gcs_sync_interval_seconds: int = 3600,
        cache_dir: str = "/tmp",
        max_logs_retention_period: datetime.timedelta | None = None,
    ) -> None:
        del pathway_enabled, gcs_sync_interval_seconds, cache_dir
        self._enabled = bool(monitoring_enabled)
        self._job_name = str(job_name)
        self._logger_name = str(logger_name)
        self._folder = str(tensorboard_dir or "")
        self._interval = upload_interval
        self._deviation_interval = step_deviation_interval_seconds
        self._badput = bool(include_badput_breakdown)
        self._has_deviation = bool(include_step_deviation)
        self._ideal = configured_ideal_step_time
        self._options = gcp_options
        self._skip = bool(skip_final_flush)
        self._timeout = final_flush_timeout_seconds
        self._retention = max_logs_retention_period
        self._windows: list[int] = []
        self._sends: set[str] = set()
        self._process: MonitorProcess | None = None

    def start_goodput_uploader(self) -> None:
        """Publish the whole job."""
        self._start(_GOODPUT)

    def stop_goodput_uploader(self, skip_final_flush: bool | None = None) -> None:
        """Publish it a last time, unless that is skipped, and stop."""
        self._stop(_GOODPUT, skip_final_flush)

    def start_step_deviation_uploader(self) -> None:
        """Publish the differences of step times from the ideal one."""
        if self._has_deviation:
            self._start(_DEVIATION)

    def stop_step_deviation_uploader(self, skip_final_flush: bool | None = None) -> None:
        """Stop, like `stop_goodput_uploader`."""
        if self._has_deviation:
            self._stop(_DEVIATION, skip_final_flush)

    def start_rolling_window_goodput_uploader(self, rolling_windows_seconds: list[int]) -> None:
        """Publish the last `rolling_windows_seconds`."""
        self._windows = list(rolling_windows_seconds)
        self._start(_WINDOWS)

    def stop_rolling_window_goodput_uploader(self, skip_final_flush: bool | None = None) -> None:
        """Stop, like `stop_goodput_uploader`."""
        self._stop(_WINDOWS, skip_final_flush)

    def _start(self, part: str) -> None:
        if not self._enabled:
            return
        if part in self._sends and self._process is not None and self._process.runs:
            print_to_stderr(f"the monitor of {self._job_name} already sends {part}")
            return
        self._sends.add(part)
        _quietly(self._run, "no monitor is started")

    def _run(self, *more: str) -> None:
        if self._process is not None:
            self._process.stop(self._timeout, kill=True)  # the next process computes everything again
            self._process = None
        published = [part for target in self._targets() for part in ("--publish", target)]
        if published:
            source = self._source()
            beside = source if "://" not in source else self._default_file()
            self._process = MonitorProcess(source, [*published, *self._arguments(), *more], print_to_stderr, beside)

    def _stop(self, part: str, skip: bool | None) -> None:
        if not self._enabled:
            return
        skip = self._skip if skip is None else bool(skip)
        sent = part in self._sends
        self._sends.discard(part)
        if self._sends and not skip:
            return
        process, self._process = self._process, None
        if process is not None:
            _quietly(lambda: process.stop(self._timeout, kill=skip), "the monitor cannot be stopped")
        elif not sent and not skip:  # the original makes one update in this case
            self._sends.add(part)
            _quietly(self._once, "nothing is published")
            self._sends.discard(part)

    def _once(self) -> None:
        self._run("--updates", "1")
        process, self._process = self._process, None
        if process is not None:
            process.wait(self._timeout)

    def _targets(self) -> list[str]:
        """Return the targets of the started uploads."""
        targets = []
        totals, deviation = _switch(_GOODPUT in self._sends), _switch(_DEVIATION in self._sends)
        if self._folder.startswith("gs://"):
            print_to_stderr(
                f"{self._folder}: a monitor cannot write event files to gs://; use a local folder or a mounted bucket"
            )
        elif self._folder:
            parts = f"totals={totals}&step_deviation={deviation}&badput={_switch(self._badput)}"
            targets.append(f"tensorboard:{self._folder}?{parts}")
        options = self._options
        wanted = options.enable_gcp_goodput_metrics or options.enable_gcp_step_deviation_metrics
        project = options.project_id or known_project()
        if wanted and project is not None:
            goodput = options.enable_gcp_goodput_metrics
            values = {
                "totals": goodput and _GOODPUT in self._sends,
                "windows": goodput and _WINDOWS in self._sends,
                "step_deviation": options.enable_gcp_step_deviation_metrics and _DEVIATION in self._sends,
                "slices": goodput and self._slices,
            }
            query = "&".join(f"{name}={_switch(bool(value))}" for name, value in values.items())
            targets.append(f"gcm:{project}?{query}")
        return targets

    def _arguments(self) -> list[str]:
        interval = self._deviation_interval if self._sends == {_DEVIATION} else self._interval
        arguments = ["--job-name", self._job_name, "--interval", str(max(float(interval), 1.0))]
        arguments += ["--wait", "1e9", "--whole-job"]
        if _WINDOWS in self._sends:
            arguments += window_arguments(self._windows)
        if self._ideal:
            arguments += ["--ideal-step-time", str(float(self._ideal))]
        if self._retention is not None:
            arguments += ["--lookback", f"{self._retention.total_seconds():.0f}s"]
        options = self._options
        named = {
            "--gcm-location": options.location,
            "--gcm-accelerator": options.acc_type,
            "--gcm-replica": options.replica_id,
            "--gcm-cluster": options.cluster_name,
        }
        arguments += [part for name, value in named.items() if value for part in (name, str(value))]
        return arguments + [part for source in self._history() for part in ("--history", source)]

    def _source(self) -> str:
        """Return the file of this process's recorder; otherwise that of an earlier attempt, otherwise Cloud Logging."""
        path = path_of(self._job_name)
        if path is not None:
            return path
        default, project = self._default_file(), known_project()
        if os.path.exists(default) or project is None:
            return default
        return f"cloud-logging://{project}/{self._logger_name}"

    def _default_file(self) -> str:
        return os.path.join(default_folder(), f"{in_path(self._job_name)}.jsonl")

    def _history(self) -> list[str]:
        """Return the other targets of the recorder: a pod's folder contains only the last attempt of the job."""
        if path_of(self._job_name) is None:
            return []
        targets = split(None)
        project = None if targets else known_project()
        if project is not None:
            return [f"cloud-logging://{project}/{self._logger_name}"]
        sources = [source_of(str(target), self._job_name, self._logger_name) for target in targets]
        return [source for source in sources if "://" in source]


def _switch(on: bool) -> str:
    return "yes" if on else "no"


def _quietly(do: Callable[[], object], otherwise: str) -> None:
    try:
        do()
    except Exception as error:
        print_to_stderr(f"{otherwise} ({type(error).__name__}: {error})")
