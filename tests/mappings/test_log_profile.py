"""`LogProfile` documents as `--mapping` (docs/mappings.md, Profiles of others)."""

from __future__ import annotations

from pathlib import Path

import pytest

import goodput_cli
from goodput_cli import Analysis, UsageError

PROFILE = r"""
apiVersion: nvcre.nvidia.com/v1alpha1
kind: LogProfile
metadata:
  name: my-framework
spec:
  timestamp:
    layout: "2006-01-02T15:04:05.999999999Z"
  patterns:
    trainingStep:
      regex: '^(?P<timestamp>\S+) \[trainer\] it (?P<globalStep>\d+) loss=(?P<loss>\S+) took (?P<stepTiming>[0-9.]+)'
      example: '2026-03-01T10:00:20.000Z [trainer] it 10 loss=0.1 took 1000.0'
      units:
        stepTiming: ms
    checkpointSave:
      regex: 'writing checkpoint at (?P<step>\d+)'
    checkpointDone:
      regex: 'checkpoint at (?P<step>\d+) is written'
    checkpointRestore:
      regex: 'reading a checkpoint'
    checkpointLoaded:
      regex: 'checkpoint was read'
    applicationStart:
      regex: 'Training started'
"""
LOG = """\
2026-03-01T10:00:00.000Z Training started
2026-03-01T10:00:02.000Z reading a checkpoint
2026-03-01T10:00:10.000Z checkpoint was read
2026-03-01T10:00:20.000Z [trainer] it 10 loss=0.1 took 1000.0
2026-03-01T10:00:30.000Z [trainer] it 20 loss=0.1 took 1000.0
2026-03-01T10:00:30.000Z writing checkpoint at 20
2026-03-01T10:00:35.000Z checkpoint at 20 is written
2026-03-01T10:00:45.000Z [trainer] it 30 loss=0.1 took 1000.0
"""


def analysed(folder: Path, profile: str = PROFILE, log: str = LOG) -> Analysis:
    (folder / "profile.yaml").write_text(profile)
    (folder / "train.log").write_text(log)
    return goodput_cli.analyze(str(folder / "train.log"), mapping=(str(folder / "profile.yaml"),))


def test_steps_saves_restores_and_starts_are_read(tmp_path: Path) -> None:
    analysis = analysed(tmp_path)
    amounts = {one.name: one.seconds for one in (*analysis.badput, analysis.goodput) if one.seconds}
    assert amounts["unproductive_checkpoint_save_time"] == 5
    assert amounts["unproductive_checkpoint_restore_time"] == 8
    assert amounts["productive"] == 30
    assert analysis.job.kept_range == (1, 30)


def test_what_a_number_counts_is_assumed_and_said_until_the_user_says_it(tmp_path: Path) -> None:
    assert "drafted_mapping" in {one.code for one in analysed(tmp_path).diagnostics}
    said = PROFILE.replace("  name: my-framework", "  name: my-framework\n  annotations: {goodput/steps: index}")
    analysis = analysed(tmp_path, said)
    assert "drafted_mapping" not in {one.code for one in analysis.diagnostics}
    assert analysis.job.kept_range == (2, 31)  # records of 11, 21 and 31 done, ten steps each


@pytest.mark.parametrize("start", [".*", "", r"\[trainer\]", "^"])
def test_a_start_that_fits_other_lines_is_refused(tmp_path: Path, start: str) -> None:
    with pytest.raises(UsageError, match="applicationStart"):
        analysed(tmp_path, PROFILE.replace("'Training started'", f"'{start}'"))


@pytest.mark.parametrize(
    ("profile", "why"),
    [
        ("kind: Pod\n", "no documents of `kind: LogProfile`"),
        ("a: [", "is not YAML"),
        ("kind: LogProfile\nspec: {patterns: {bandwidthResult: {regex: x}}}\n", "no `trainingStep`"),
        ("kind: LogProfile\nspec: {patterns: {trainingStep: {regex: 'loss=(?P<loss>.)'}}}\n", "captures neither"),
    ],
)
def test_what_is_no_profile_is_refused_in_a_sentence(tmp_path: Path, profile: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        analysed(tmp_path, profile)


def test_a_pattern_that_is_no_re2_is_one_sentence_and_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=r"applicationStart\.regex is no regular expression .*: invalid perl operator"):
        analysed(tmp_path, PROFILE.replace("'Training started'", "'(?=Training)x'"))
    assert capfd.readouterr() == ("", "")
