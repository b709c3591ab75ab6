"""The earlier place of questions about a log that was read; see `goodput_cli.jobs` and `goodput_cli.check`."""

from goodput_cli.analysis.each_job import check_log as check_log
from goodput_cli.analysis.each_job import list_jobs as list_jobs
