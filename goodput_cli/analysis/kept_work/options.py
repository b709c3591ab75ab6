"""User knowledge about the work of a job that its log does not contain. This module does not import NumPy, because
`--help` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from goodput_cli.errors import UsageError
from goodput_cli.vocabulary.option import bounded, option

WORK = "Work"
"""Heading in `--help`."""
TERA = 1e12
PEAK_TFLOPS: Mapping[str, float] = {
    "a100": 312, "h100": 989, "h200": 989, "h100-pcie": 756, "b200": 2250, "gb200": 2500,
    "v4": 275, "v5e": 197, "v5p": 459, "v6e": 918,
}  # fmt: skip
"""Peak TFLOP/s of one accelerator: dense BF16, without sparsity."""
_MOST = 1e18
"""Upper limit of plausible work per step."""
_read_tokens = bounded(float, "is not a number of tokens; use a number above 0", above=0, most=_MOST)
_read_peak = bounded(float, "is not a number of TFLOP/s; use a number above 0, such as 989", above=0, most=1e6)
_read_total = bounded(int, "is not a number of steps; use a whole number from 1", least=1, most=_MOST)


@dataclass(frozen=True, kw_only=True)
class WorkOptions:
    """User input about the work of a job, which takes precedence over the log."""

    tokens_per_step: float | None = option(
        None,
        WORK,
        "Tokens per step, over all accelerators.  [default: from the log]",
        about="Tokens per step, over all accelerators. None: from the log.",
        metavar="N",
        read=_read_tokens,
    )
    peak_tflops: float | None = option(
        None,
        WORK,
        "Peak TFLOP/s of one accelerator, for MFU.  [default: from the log]",
        about="Peak TFLOP/s of one accelerator, for MFU. None: from the log.",
        metavar="N",
        read=_read_peak,
    )
    accelerator_type: str | None = option(
        None,
        WORK,
        "Accelerator, for its peak in dense BF16.",
        about="Accelerator, for its peak in dense BF16. None: from the log.",
        choices=tuple(PEAK_TFLOPS),
    )
    total_steps: int | None = option(
        None,
        WORK,
        "Number of steps of the whole job, for the ETA.  [default: from the log]",
        about="Number of steps of the whole job, for the ETA. None: from the log.",
        metavar="N",
        read=_read_total,
    )

    def __post_init__(self) -> None:
        if self.peak_tflops is not None and self.accelerator_type is not None:
            raise UsageError("use either --peak-tflops or --accelerator-type, not both")

    @property
    def peak_flops(self) -> float | None:
        """Return the peak FLOP/s of one accelerator; None if unknown."""
        if self.accelerator_type is not None:
            return PEAK_TFLOPS[self.accelerator_type] * TERA
        return None if self.peak_tflops is None else self.peak_tflops * TERA

    @property
    def peak_option(self) -> str:
        """Return the option that sets it, as typed."""
        return "--peak-tflops" if self.accelerator_type is None else f"--accelerator-type {self.accelerator_type}"


NOTHING_SAID = WorkOptions()
