"""The parts of the recorder that the drop-ins use. The recorder is `goodput_cli.record` here and `goodput_record` in
the small wheel, which contains this folder, too, as `goodput_record.drop_in`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING or __name__.startswith("goodput_cli."):
    from goodput_cli.record.clock import Clock, Heartbeat, microseconds
    from goodput_cli.record.lines import LOADING, PHASE_LINE, SPARE, STEP_LINE, VITAL, epoch_seconds
    from goodput_cli.record.names import TO_INSTALL, default_folder, in_path, variable
    from goodput_cli.record.sinks.google import WRITER, known_project
    from goodput_cli.record.sinks.targets import check, split
    from goodput_cli.record.writer import Writer, path_of, print_to_stderr
else:
    from ..clock import Clock, Heartbeat, microseconds
    from ..lines import LOADING, PHASE_LINE, SPARE, STEP_LINE, VITAL, epoch_seconds
    from ..names import TO_INSTALL, default_folder, in_path, variable
    from ..sinks.google import WRITER, known_project
    from ..sinks.targets import check, split
    from ..writer import Writer, path_of, print_to_stderr

__all__ = [
    "LOADING",
    "PHASE_LINE",
    "SPARE",
    "STEP_LINE",
    "TO_INSTALL",
    "VITAL",
    "WRITER",
    "Clock",
    "Heartbeat",
    "Writer",
    "check",
    "default_folder",
    "in_path",
    "known_project",
    "microseconds",
    "path_of",
    "print_to_stderr",
    "split",
    "epoch_seconds",
    "variable",
]
