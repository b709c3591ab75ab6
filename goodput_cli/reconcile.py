"""The earlier place of `reconcile_job`: `from goodput_cli.reconcile import reconcile_job` goes on working.

An import of this module binds its name in the package, where `reconcile` is a function: so the function stands in.
"""

import sys

from goodput_cli.analysis.reconcile.run import reconcile_job
from goodput_cli.api.reconcile import reconcile

reconcile.reconcile_job = reconcile_job  # type: ignore[attr-defined]
sys.modules[__name__] = reconcile  # type: ignore[assignment]
