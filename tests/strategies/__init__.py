"""Hypothesis strategies for small logs, and changes that must not change the answer.

A log is a list of JSON texts, one event or more, in an order that a real log could have. All times are whole seconds
after `BASE`, so that an oracle may paint the job second by second. Most logs are a story of attempts that could have
happened; some (`messy`) have lines dropped, moved or doubled at random.
"""

from .changes import (
    as_array,
    doubled,
    enveloped,
    respelled,
    shifted,
    shuffled,
    split,
    unchanged_answers,
    with_junk,
)
from .checkpoints import checkpoint_stories
from .logs import any_logs, asynchronous_logs, checkpoint_logs, messy_logs, mixed_logs, step_end_logs, step_logs
from .pen import BASE, JOB
from .steps import step_stories
from .writers import agent_logs, beating_logs, entry_logs

__all__ = [
    "BASE", "JOB", "agent_logs", "any_logs", "as_array", "asynchronous_logs", "beating_logs", "checkpoint_logs",
    "checkpoint_stories", "doubled", "enveloped", "entry_logs", "messy_logs", "mixed_logs", "respelled", "shifted",
    "shuffled", "split", "step_end_logs", "step_logs", "step_stories", "unchanged_answers", "with_junk",
]  # fmt: skip
