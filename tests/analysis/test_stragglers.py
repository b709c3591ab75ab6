"""Ranks that straggler reports name: enough reports of one step-time regime, and no individual scores."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import goodput_cli
from goodput_cli.analysis.goodput.analysis import Analysis
from goodput_cli.analysis.hangs.report import Stragglers, slow_words, stragglers_of
from goodput_cli.analysis.steps.sheet import step_report, steps_sheet
from goodput_cli.cli.main import run


def log(named: Sequence[Sequence[int]], *, kind: str = "relative", slow_from: int = 30) -> str:
    """Return a log of 60 steps with a report after every tenth one. named: ranks that each report names."""
    lines, second = [], 0
    for step in range(1, 61):
        second += 10 if step < slow_from else 13
        clock = f"2026-03-01 12:{second // 60:02d}:{second % 60:02d}"
        took = 10_000.0 if step < slow_from else 13_000.0
        lines.append(
            f" [{clock}.000000] iteration {step:8d}/    1000 | consumed samples: {step * 8:12d} | elapsed time per "
            f"iteration (ms): {took} | global batch size:     8 | lm loss: 1.8E+00 |"
        )
        if step % 10 == 0 and step // 10 <= len(named):
            ranks = named[step // 10 - 1]
            lines += [
                f"[NeMo I {clock} straggler_det_callback:157] ", f"    GPU {kind} performance:",
                "     Worst performing 2/8 ranks:", *(f"      Rank={rank} Node=node-1 Score=0.50" for rank in ranks),
                "      Rank=7 Node=node-0 Score=0.97",
            ]  # fmt: skip
            if ranks:
                listed = ", ".join(f"StragglerId(rank={rank}, node='node-1')" for rank in ranks)
                lines.append(
                    f"[NeMo W {clock} straggler_det_callback:124] STRAGGLER DETECTION WARNING: Some GPUs have worse "
                    f"{kind} performance. Affected ranks: {{{listed}}}"
                )
    return "\n".join(lines) + "\n"


def analysed(folder: Path, text: str) -> Analysis:
    (folder / "run.log").write_text(text, encoding="utf-8")
    return goodput_cli.analyze(str(folder / "run.log"))


def found(analysis: Analysis) -> Stragglers:
    stragglers = stragglers_of(analysis)
    assert stragglers is not None
    return stragglers


def test_rank_is_named_in_the_slow_period(tmp_path: Path) -> None:
    analysis = analysed(tmp_path, log([[], [], [], [3], [3], [3]]))
    stragglers = found(analysis)
    (row,) = stragglers.ranks
    assert (stragglers.source, stragglers.reports) == ("nvrx", 6)
    assert (row.rank, row.host, row.named_in, row.score, row.slower) == (3, "node-1", 3, 0.5, 2.0)
    slow = next(one for one in analysis.insights if one.code == "slow_steps")
    assert slow.text.endswith("rank 3 (node-1) is named in 3 of 4 straggler reports")


@pytest.mark.parametrize("named", [[[], [], [], [3], [3]], [[], [], [3], [1], [3], [2]]])
def test_rank_of_few_reports_is_not_named(named: list[list[int]], tmp_path: Path) -> None:
    analysis = analysed(tmp_path, log(named))
    window = analysis.window
    assert slow_words(found(analysis), window.start_ns, window.end_ns) == ""
    (sheet,) = (
        one for one in steps_sheet(analysis, step_report(analysis), "rank").sections if "Straggler" in one.title
    )
    assert any("no rank is named 3 times" in note for note in sheet.notes)


def test_individual_scores_name_nobody(tmp_path: Path) -> None:
    assert stragglers_of(analysed(tmp_path, log([[3]] * 6, kind="individual"))) is None


def test_reports_of_flagscale_are_read_whatever_their_case(tmp_path: Path) -> None:
    report = "{0} {1} at Step 40 {0}\nSection: forward\nRank 2: 4.00ms\nRank 3: 8.00ms\nSlowdown: 2.00x\n{2}: [3]\n"
    text = log([]) + report.format("===", "Straggler Report", "Detected stragglers")
    text += report.format("---", "STRAGGLER REPORT", "DETECTED STRAGGLERS").replace(" at Step", " AT STEP")
    (row,) = found(analysed(tmp_path, text)).ranks
    assert (row.rank, row.named_in, row.score) == (3, 2, 0.5)


def test_answer_of_steps_has_the_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    analysed(tmp_path, log([[3]] * 3))
    run(["steps", str(tmp_path / "run.log"), "--format", "json", "--quiet"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["stragglers"]["ranks"][0]["named_in"] == 3
