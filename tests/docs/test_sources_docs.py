"""docs/sources.md: every row of a fault table has a test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
TESTS = {
    "408, 429, 500, 502, 503, 504, or `Retry-After`": (
        "test_busy_server_is_asked_again",
        "test_requested_pause_is_respected",
        "test_transient_faults_are_retried",
    ),
    "connection reset, body cut, wrong checksum, or 20 s without a byte": (
        "test_broken_connection_and_wrong_bytes_are_retried",
        "test_broken_part_of_large_object_is_retried",
        "test_hanging_server_is_retried",
    ),
    "page of a listing fails": ("test_listing_continues_at_the_failed_page",),
    "any of these five times in a row, or no network": (
        "test_retries_end_with_an_error_naming_the_object",
        "test_missing_server_is_an_error",
    ),
    "no credentials, or the metadata server does not answer": ("test_missing_credentials_fail_within_seconds",),
    "no such bucket, nothing matches, everything was deleted, or the store refuses (invalid name, requester pays)": (
        "test_name_without_objects_is_an_error",
        "test_only_object_deleted_is_an_error",
        "test_rejected_request_is_an_error",
    ),
    "no permission to read an object": ("test_denied_error_names_object_and_permission",),
    "no permission to list": ("test_bucket_without_list_permission_is_read",),
    "object replaced after the listing": ("test_object_replaced_before_reading",),
    "object replaced while it is read": (
        "test_object_replaced_during_reading",
        "test_object_replaced_repeatedly_is_an_error",
    ),
    "object deleted before or while it is read": (
        "test_object_deleted_before_reading",
        "test_object_deleted_during_reading",
    ),
    "object cut or damaged": (
        "test_damaged_object_does_not_affect_others",
        "test_strict_fails_on_survivable_problems",
    ),
    "Ctrl-C, even while the server hangs": ("test_interrupt_works_while_the_server_hangs",),
    "UNAVAILABLE, INTERNAL, ABORTED, UNKNOWN, DEADLINE_EXCEEDED, a cut answer, a dropped connection, or a page over "
    "60 s": (
        "test_failed_request_is_retried_without_loss",
        "test_dropped_connection_is_reopened",
        "test_slow_page_is_requested_again",
    ),
    "quota used up (RESOURCE_EXHAUSTED)": (
        "test_exhausted_quota_is_reported_and_waited_for",
        "test_permanently_exhausted_quota_is_an_error",
    ),
    "page token expired": ("test_expired_page_token_is_handled",),
    "no permission, API off, login refused, no such project, no network, no credentials, or a silent metadata server": (
        "test_permanent_error_is_one_sentence",
        "test_closed_port_is_an_error",
        "test_missing_credentials_fail_within_seconds",
    ),
    "network lost in the middle, or Ctrl-C": (
        "test_data_before_a_network_failure_is_kept",
        "test_ctrl_c_keeps_fetched_data",
    ),
    "no entries of the job": ("test_missing_job_is_not_enough_data",),
    "`--lookback` is too short, or the start has expired": (
        "test_lookback_that_cuts_the_job_is_a_warning",
        "test_expired_job_start_is_a_warning",
    ),
    "late entry": ("test_late_entry_is_found", "test_mixed_sources_are_merged_without_duplicates"),
    "quotes, backslashes or operators in a job name": ("test_job_name_is_quoted_in_the_filter",),
    "damaged or unusable cache": (
        "test_damaged_cache_is_replaced",
        "test_unusable_cache_folder_is_reported",
    ),
    "two processes at once": ("test_two_processes_leave_a_complete_cache",),
    "fetch interrupted": ("test_failed_fetch_keeps_its_data_and_continues",),
    "file exists, is a snapshot of other sources, or another file has the name of the manifest": (
        "test_existing_file_is_not_overwritten",
        "test_file_that_is_not_a_manifest_is_not_replaced",
    ),
    "snapshot changed": ("test_changed_snapshot_is_reported_and_not_updated",),
    "source cut": ("test_truncated_source_stays_marked",),
    "Parquet file that is not a snapshot": ("test_parquet_that_is_not_a_snapshot_is_read",),
    "file grows, or its writer stops within a line": (
        "test_every_byte_is_read_once",
        "test_line_in_two_pieces_is_read_once",
    ),
    "file truncated, or written again with any length": (
        "test_truncated_file_is_read_again",
        "test_rewritten_file_of_same_length_is_read_again",
    ),
    "file rotated while its writer still uses the old one, also to a name that is followed": (
        "test_rotation_loses_nothing",
        "test_rotation_in_a_glob_reads_nothing_twice",
    ),
    "file removed": ("test_deleted_files_are_closed",),
    "one source unreadable for a while": (
        "test_unreadable_file_does_not_delay_others",
        "test_bucket_returns_new_objects_and_versions",
        "test_fault_is_reported_and_next_poll_continues",
    ),
    "late entry with an older timestamp": ("test_new_and_late_entries_come_once",),
}
"""The tests of each listed fault."""


def test_every_listed_fault_has_a_test() -> None:
    listed = re.findall(r"^- \*((?:[^*]|\n)+)\*:\s", PAGE, re.MULTILINE)
    assert [" ".join(fault.split()) for fault in listed] == list(TESTS)
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {name for names in TESTS.values() for name in names} <= defined


def test_overlap_widths_agree_with_the_code() -> None:
    from goodput_cli.sources.cloud_logging import CLOCK_MARGIN_NS, OVERLAP_NS

    assert (OVERLAP_NS, CLOCK_MARGIN_NS) == (3600 * 10**9, 600 * 10**9)
    assert "**one hour**" in PAGE
    assert "**ten minutes**" in PAGE
