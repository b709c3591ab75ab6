"""What `goodput monitor` tells Prometheus beside the metrics of a report (docs/monitoring.md has the list)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from goodput_cli.analysis.published import Family
from goodput_cli.analysis.rolling.results import Rolling
from goodput_cli.monitor.health import Health
from goodput_cli.monitor.snapshot import Snapshot
from goodput_cli.report.formats.openmetrics import END, Labels, exposition, families
from goodput_cli.vocabulary.categories import Category
from goodput_cli.vocabulary.text import exact, safe, seconds_text


def snapshot_text(snapshot: Snapshot) -> str:
    """The metrics of an update, without what ends the text."""
    job = {"job_name": snapshot.analysis.job.name}
    whole = families(snapshot.analysis) if snapshot.whole else iter(())
    return exposition([*whole, *_of_windows(snapshot.analysis.rolling), *_of_now(snapshot)], job)


def health_text(health: Health, job_name: str | None) -> str:
    """The metrics of the monitor itself, and what ends the text."""
    return exposition(_of_monitor(health), {} if job_name is None else {"job_name": job_name}) + END


def _of_windows(rolling: Rolling | None) -> Iterator[Family]:
    ratios: list[tuple[Labels, str]] = []
    amounts: list[tuple[Labels, str]] = []
    for row in () if rolling is None else rolling.rows():
        window = {"window": seconds_text(row.window_ns)}
        counted = row.end_ns - row.start_ns - row.excluded_ns
        if counted:
            ratios.append((window, exact(float(Fraction(row.productive_ns, counted)))))
        seconds = {(Category.PRODUCTIVE.id, ""): row.productive_ns}
        for part in row.badput:
            key = part.category, safe(part.label or "")
            seconds[key] = seconds.get(key, 0) + part.ns
        amounts += [
            (window | {"category": category, "label": label}, seconds_text(ns))
            for (category, label), ns in seconds.items()
        ]
    yield Family("goodput_rolling_ratio", "Productive share of the last so many seconds.", ratios)
    yield Family("goodput_rolling_category_seconds", "Time of the last so many seconds by category.", amounts)


def _of_now(snapshot: Snapshot) -> Iterator[Family]:
    """Seconds since the last event and the last step, where a hang shows first; never negative, whatever the clock
    does."""
    now = max(snapshot.at_ns, snapshot.last_event_ns)
    ages = {"event": snapshot.last_event_ns, "step": snapshot.last_step_ns}
    for name, last in ages.items():
        samples: list[tuple[Labels, str]] = [] if last is None else [({}, seconds_text(now - last))]
        yield Family(f"goodput_seconds_since_last_{name}", f"Since the last {name}, when the log was read.", samples)
    yield Family("goodput_job_ended", "1 after a clean end that is believed.", [({}, str(int(snapshot.ended)))])


def _of_monitor(health: Health) -> Iterator[Family]:
    failing, looked_at, targets = health.state()
    looks: list[tuple[Labels, str]] = [] if looked_at is None else [({}, exact(round(looked_at, 3)))]
    yield Family("goodput_monitor_source_failing", "1 while a source cannot be read.", [({}, str(int(failing)))])
    yield Family("goodput_monitor_last_look_timestamp_seconds", "When all sources could be read, since 1970.", looks)
    yield Family(
        "goodput_monitor_last_success_timestamp_seconds",
        "When the target took an update, since 1970 UTC.",
        [({"target": name}, exact(round(at, 3))) for name, (at, _) in targets.items() if at is not None],
    )
    yield Family(
        "goodput_monitor_failures",
        "Updates that the target did not take.",
        [({"target": name}, str(failures)) for name, (_, failures) in targets.items()],
    )
