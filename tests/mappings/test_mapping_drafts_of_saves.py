"""Drafts for logs whose save lines look like step lines."""

from __future__ import annotations

from pathlib import Path

from tests.mappings.drafting import drafted, pytorch


def test_saves_that_look_like_steps_are_not_steps(tmp_path: Path) -> None:
    """Steps of 10 s; a save of 20 s after step 3; then nothing for 1000 s, and from step 4 again."""

    def stepped(first: int, last: int, second: float) -> str:
        lines = (pytorch(second + 10 * (step - first), f"step={step} loss=2.1") for step in range(first, last + 1))
        return "".join(lines)

    log = (
        pytorch(0, "starting trainer")
        + stepped(1, 3, 30)
        + pytorch(60, "saving checkpoint at step=3")
        + pytorch(80, "checkpoint saved at step=3")
        + stepped(4, 6, 90)
        + pytorch(1110, "starting trainer")
        + pytorch(1120, "restored checkpoint step=3")
        + stepped(4, 9, 1130)
        + pytorch(1190, "done")
    )
    analysis = drafted(tmp_path, log)
    assert (analysis.job.attempts, analysis.job.kept_steps, analysis.job.ending) == (2, 9, "clean")
    (death,) = analysis.disruptions
    assert (death.last_step, death.resumed_step) == (6, 3)
    assert analysis.saves is not None
    assert analysis.saves.count == 1
    assert "line = '__main__: done'" in (tmp_path / "my.toml").read_text(encoding="utf-8")


def test_saves_with_begin_end_and_step_are_saves(tmp_path: Path) -> None:
    """Steps of 2 s, and a save of 20 s after each fortieth, in three words."""
    lines, second = [pytorch(0, "starting trainer")], 0
    for step in range(5, 205, 5):
        second += 10
        lines.append(pytorch(second, f"train | step {step} | loss 2.1"))
        if step % 40 == 0:
            lines.append(pytorch(second, f"save | begin | step {step}"))
            second += 20
            lines.append(pytorch(second, f"save | end | step {step}"))
    analysis = drafted(tmp_path, "".join(lines))
    assert analysis.goodput.seconds == 400
    assert analysis.saves is not None
    assert analysis.saves.count == 5
