"""Mistakes in mappings are reported in a sentence with file, line and column, before anything is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from goodput_cli.errors import UsageError
from goodput_cli.events.mappings.samples import SampleFailed
from goodput_cli.events.reading_options import ReadingOptions
from tests.text.support import NANOGPT

NAME, STEPS, EVENT, UNIT = 'name = "nanogpt"', 'steps = "index"', 'event = "step"\n', 'each = { unit = "ms" }'
SAVE, CURSOR = 'line = "saving checkpoint to {_}"', 'time = "cursor"'
MISTAKES = [
    # the file
    ('event = "save"', 'event = "save', "11:14", "invalid TOML: illegal character"),
    ('event = "save"', 'event = "save"\nevent = "x"', "12:12", "invalid TOML: cannot overwrite a value"),
    ('[[rule]]\nevent = "save"', '[rule]\nevent = "save"', "10:6", "invalid TOML: cannot declare"),
    ("[[sample]]", "[sample]", "14:1", "samples are written as `[[sample]]` tables"),
    ('[[rule]]\nevent = "step"', '[[rules]]\nevent = "step"', "4:1", "unknown key `rules`; did you mean rule?"),
    # the mapping
    (NAME, 'name = "Nano GPT"', "1:1", "needs a `name` of lower-case letters"),
    (NAME, "", "1:1", "needs a `name` of lower-case letters"),
    (NAME, 'name = "megatron"', "1:1", "`megatron` is a built-in format; choose another name"),
    (NAME, f'{NAME}\nnmae = "x"', "2:1", "unknown key `nmae`; did you mean name?"),
    (STEPS, 'steps = "indx"', "2:1", "`steps` is one of done, index, start; did you mean index?"),
    (STEPS, "steps = 3", "2:1", "`steps` is one of"),
    (STEPS, 'zone = "Europe/Berln"', "2:1", "unknown time zone 'Europe/Berln'"),
    (STEPS, "job = 3", "2:1", "`job` is a name"),
    (STEPS, 'job = { path = "runs/(x" }', "2:1", "invalid regular expression (RE2)"),
    (STEPS, 'job = { path = "runs/x" }', "2:1", "needs a group `job`"),
    (STEPS, 'split = "\\n"', "2:1", "`split` is"),
    (STEPS, "assumed = ['steps are done', 3]", "2:1", "`assumed` is a list of strings"),
    (STEPS, 'csv = ";"', "2:1", "`csv` is true, or a table with one character"),
    (STEPS, CURSOR, "2:1", "is for rules whose lines have no time"),
    (STEPS, 'time = { format = "epoch" }', "2:10", "`epoch` is not a time format: write epoch_s or epoch_ms"),
    (STEPS, 'time = { format = "%Q/%m/%d" }', "2:10", "`%Q` is not supported in a time format"),
    (STEPS, 'time = { fromat = "iso" }', "2:10", "unknown key `fromat`; did you mean format?"),
    # a rule
    (EVENT, 'event = "stpe"\n', "5:1", "did you mean step"),
    (EVENT, "", "4:1", "a rule needs `event`; `event` is one of step, step_start"),
    ("{step:int}", "{stepp:int}", "6:1", "needs a field `step` (did you mean stepp?)"),
    ("{step:int}", "{step:integer}", "6:1", "`integer` is not a field type; write one of int, float"),
    ("{step:int}", "{step:int} {step:int}", "6:1", "the field `step` appears twice"),
    ("{step:int}", "[?{step:int}", "6:1", "`[?` is not closed by `?]`"),
    (CURSOR, 'time = "cursr"', "8:1", '`time` is "cursor", or a table'),
    (CURSOR, 'time = { format = "iso", offset = "90" }', "8:26", 'written in seconds, such as "-90s"'),
    (CURSOR, 'time = { field = "ts" }', "8:10", "the rule has no field `ts`"),
    (UNIT, 'each = "ms"', "7:1", "`each` is a table such as { unit = … }"),
    (UNIT, 'each = { units = "ms" }', "7:10", "unknown key `units`; did you mean unit?"),
    (UNIT, 'each = { unit = "sec" }', "7:10", "`unit` is one of s, ms, us, ns, min, h, per_s"),
    (UNIT, 'took = { unit = "ms" }', "7:1", "`took` gives the unit of a field that the rule does not have"),
    (UNIT, 'edge = "start"', "7:1", "`edge` is one of point, begin, end"),
    (UNIT, 'also = "yes"', "7:1", "`also` is true or false, without quotes"),
    (UNIT, 'epoch = { steps = "x" }', "7:11", "`steps` is a whole number from 1"),
    (UNIT, "step = -1", "7:1", "`step` is a table such as { add = -1 }"),
    (UNIT, "where = { a = 1 }", "7:1", "it needs `keys`"),
    ("{_}, time {each:float}ms", "{_}, epoch {epoch:int}", "8:1", "needs a field `each`, `took` or `elapsed`"),
    (SAVE, "line = ''", "12:1", "`line` is empty"),
    (SAVE, "", "10:1", "this one has none"),
    (SAVE, "regex = 'x'\nline = 'y'", "12:1", "this one has `line` and `regex`"),
    (SAVE, 'keys = { step = "s" }\nline = "x"', "13:1", "`keys.text` is its path"),
    (SAVE, 'keys = { text = "s" }', "12:1", "write one of them"),
    (SAVE, 'keys = { stp = "s" }', "12:10", "unknown key `stp`; did you mean step?"),
    (SAVE, 'keys = { step = "s" }\nwhere = { a = { lik = "x" } }', "13:17", "unknown key `lik`; did you mean like?"),
    ('event = "save"', 'event = "custom"', "10:1", "a `custom` rule needs a `label`"),
    # Invalid or possibly slow patterns.
    (SAVE, "regex = '(checkpoint'", "12:1", "invalid regular expression: missing )"),
    (SAVE, "regex = 'saving (?=checkpoint)'", "12:1", "invalid regular expression (RE2): invalid perl operator"),
    (SAVE, "regex = '(a+)+checkpoint'", "12:1", "a repeat of a repeat"),
    (SAVE, "regex = 'a?'", "12:1", "no text of 4 characters"),
    (SAVE, "regex = '(?i)saving checkpoint'", "12:1", "no text of 4 characters"),
    (SAVE, "regex = 'save.{900}x.{900}'", "12:1", "instructions would be slow; at most 2000"),
    (SAVE, f"line = '{'x' * 4001}'", "12:1", "a pattern of 4001 characters"),
    (SAVE, "line = '{_}'\nslow = true", "12:1", "matches an empty line"),
    # Unused rules.
    (SAVE, "line = 'iter {step:int}: loss {_}, time {took:float}ms'", "10:1", "never used: the rule in line 4"),
    # samples
    ("step = 101", "step = 100", "15:1", "sample failed: `gives` has `step` = 100, but the rule in line 4 gives 101"),
    ('"iter 100:', '"itr 100:', "15:1", "sample failed: no rule matches this line"),
    ("step = 101", "step = '101'", "16:19", "`step` is a whole number"),
    ("step = 101", "stp = 101", "16:27", "unknown key `stp`; did you mean step?"),
    ("gives = {", "giv = {", "16:1", "unknown key `giv`; did you mean gives?"),
]


@pytest.mark.parametrize(("was", "becomes", "place", "sentence"), MISTAKES)
def test_mistake_has_its_location(tmp_path: Path, was: str, becomes: str, place: str, sentence: str) -> None:
    assert was in NANOGPT
    path = tmp_path / "my.toml"
    path.write_text(NANOGPT.replace(was, becomes, 1), encoding="utf-8")
    with pytest.raises(UsageError) as error:
        ReadingOptions(mapping=(str(path),)).checked()
    assert sentence in str(error.value)
    assert str(error.value).startswith(f"{path}:{place}: ")
    assert isinstance(error.value, SampleFailed) == sentence.startswith("sample failed")


@pytest.mark.parametrize(
    ("text", "place", "sentence"),
    [
        ("", "1:1", "needs a `name`"),
        ("[tool.goodput]\nwindow = '1h'\n", "1:1", "contains no mapping"),
        ("[mapping]\na = 3\n", "2:1", "`mapping.a` is a table"),
        ("name = 'x'\nrule = 3\n", "2:1", "a mapping needs `[[rule]]` tables"),
        ("name = 'x'\n[[rule]]\nevent = 'finished'\nline = 'done with it'\n", "2:1", "nothing to account for"),
        # Locations where a search for `key =` would go wrong: inline tables, multi-line strings, settings tables.
        ("name='x'\nrule=[{event='step', line='abcd {step:int}'},\n{event='stepp', line='abcd'}]\n", "2:1", "`event`"),
        ("name='x'\n[[rule]]\nline='''\nevent = 1\nabcd'''\nevent='steps'\n", "6:1", "`event` is one of"),
        ("[mapping.a]\n[[mapping.a.rule]]\nevent='step'\nline='abcd'\n", "4:1", "a `step` rule needs a field `step`"),
    ],
)
def test_invalid_mapping_file_has_a_location(tmp_path: Path, text: str, place: str, sentence: str) -> None:
    path = tmp_path / "my.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=re.escape(sentence)) as error:
        ReadingOptions(mapping=(str(path),)).checked()
    assert str(error.value).startswith(f"{path}:{place}: ")


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b'name = "x"\nzone = "\xff"\n')
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    for name, sentence in (
        ("none.toml", "No such file"),
        ("bytes.toml", "2:1: is not UTF-8 text"),
        ("large.toml", "1 MiB"),
    ):
        with pytest.raises(UsageError, match=sentence):
            ReadingOptions(mapping=(str(tmp_path / name),)).checked()


def test_sample_of_a_shadowed_rule_names_the_rule(tmp_path: Path) -> None:
    """The rule for a sample is shadowed by an earlier, wider one: the error has the rule's location."""
    text = NANOGPT.replace(SAVE, f"{SAVE}\n[[rule]]\nevent = 'eval'\nregex = 'checkpoint to out for (?P<label>eval)'")
    text += '[[sample]]\nline = "saving checkpoint to out for eval"\ngives = { event = "eval" }\n'
    path = tmp_path / "my.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as error:
        ReadingOptions(mapping=(str(path),)).checked()
    assert str(error.value).startswith(f"{path}:13:1: this rule is never used: the rule in line 10 matches its lines")
    path.write_text(text.replace(SAVE, f"{SAVE}\nalso = true"), encoding="utf-8")
    with pytest.raises(SampleFailed, match='`gives` has `event` = "eval"'):  # The first one is shown.
        ReadingOptions(mapping=(str(path),)).checked()
