"""Set-up that all tests share."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell: the tests of Ctrl-C need it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Machines are shared and noisy: no test may fail because it took long. The examples are the same in every run, so that
# a change is judged by what it changes; GOODPUT_EXPLORE=1 looks for new ones, GOODPUT_EXPLORE=5000 for that many.
_explore = int(os.environ.get("GOODPUT_EXPLORE", "0") or 0)
settings.register_profile(
    "goodput",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not _explore,
    max_examples=max(_explore, 100),
)
settings.load_profile("goodput")
