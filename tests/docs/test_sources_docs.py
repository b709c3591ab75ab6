"""docs/sources.md: every row of a fault table has a test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
TESTS = {
    "408, 429, 500, 502, 503, 504, or `Retry-After`": (
        "test_an_answer_that_asks_to_come_back",
        "test_the_pause_that_is_asked_for_is_kept",
    ),
    "connection reset, body cut, wrong checksum": (
        "test_a_connection_that_breaks_and_bytes_that_are_wrong",
        "test_a_part_of_a_large_object_that_breaks",
    ),
    "server hangs": ("test_a_server_that_hangs",),
    "page of a listing fails": ("test_a_listing_goes_on_from_the_page_that_failed",),
    "any of these five times in a row": ("test_trying_again_has_an_end_that_names_the_object",),
    "the same in S3": ("test_faults_that_pass",),
    "no network": ("test_a_server_that_is_not_there",),
    "no credentials, or the metadata server does not answer": ("test_no_credentials_is_one_sentence_within_seconds",),
    "no such bucket, nothing matches, or everything was deleted": (
        "test_what_names_nothing",
        "test_deleted_with_nothing_else_to_read",
    ),
    "store refuses the request (invalid bucket name, requester pays)": ("test_a_request_that_the_store_does_not_take",),
    "no permission to read an object": ("test_denied_names_the_object_and_the_permission",),
    "no permission to list": ("test_a_bucket_that_may_not_be_listed",),
    "object replaced after the listing": ("test_replaced_before_it_was_read",),
    "object replaced while it is read": ("test_replaced_while_it_was_read",),
    "object replaced again and again": ("test_replaced_without_end",),
    "object deleted after the listing": ("test_deleted_before_it_was_read",),
    "object deleted while it is read": ("test_deleted_while_it_was_read",),
    "object cut or damaged": ("test_damage_inside_an_object_costs_no_other",),
    "one of these diagnostics, with `--strict`": ("test_strict_stops_at_what_the_rest_survives",),
    "Ctrl-C, even while the server hangs": ("test_interrupted_while_the_server_hangs",),
    "UNAVAILABLE, INTERNAL, ABORTED, UNKNOWN, DEADLINE_EXCEEDED, or a cut answer": (
        "test_a_request_that_fails_is_made_again_and_nothing_is_lost",
    ),
    "connection drops, or a page takes more than 60 s": (
        "test_a_dropped_connection_is_made_again",
        "test_a_page_that_takes_too_long_is_asked_for_again",
    ),
    "quota used up (RESOURCE_EXHAUSTED)": ("test_a_used_up_quota_is_waited_for_and_said",),
    "quota used up for ten minutes": ("test_a_quota_that_stays_used_up_is_an_error_with_a_way_out",),
    "page token expired": ("test_a_page_token_that_expired_is_no_end",),
    "no permission, API off, login refused, no such project, no network": (
        "test_what_stays_wrong_is_one_sentence",
        "test_nobody_listens",
    ),
    "no credentials, or a silent metadata server": ("test_no_credentials_are_said_within_seconds",),
    "network lost in the middle": ("test_what_was_read_before_the_network_went_is_kept",),
    "Ctrl-C": ("test_ctrl_c_keeps_what_was_fetched",),
    "no entries of the job": ("test_a_job_that_is_not_there_is_not_enough_data",),
    "`--lookback` is too short, or the start has expired": (
        "test_a_lookback_that_cuts_the_job_is_a_warning",
        "test_a_job_whose_start_has_expired_is_a_warning",
    ),
    "late entry": ("test_an_entry_that_comes_late_is_found",),
    "same entry in a sink and in Cloud Logging": ("test_mixed_sources_are_merged_and_each_entry_counts_once",),
    "quotes, backslashes or operators in a job name": ("test_a_job_name_is_a_value_and_no_filter_language",),
    "damaged cache": ("test_a_damaged_cache_is_read_anew",),
    "unusable cache directory": ("test_a_folder_that_cannot_be_used_is_said_and_reading_goes_on",),
    "two processes at once": ("test_two_processes_at_once_leave_a_whole_cache",),
    "fetch interrupted": ("test_a_fetch_that_breaks_off_keeps_what_it_has_and_goes_on",),
    "file exists, is a snapshot of other sources, or another file has the name of the manifest": (
        "test_what_exists_is_not_destroyed",
        "test_what_is_no_manifest_is_not_replaced",
    ),
    "snapshot changed": ("test_a_snapshot_that_was_changed_is_said_and_not_gone_on_with",),
    "source cut": ("test_a_cut_source_stays_known",),
    "Parquet file that is not a snapshot": ("test_a_parquet_file_that_is_no_snapshot",),
    "file grows": ("test_every_byte_is_read_once",),
    "writer stops within a line": ("test_a_line_in_two_pieces",),
    "file truncated, or written again with any length": (
        "test_a_file_that_is_truncated",
        "test_a_file_of_the_same_length_written_anew",
    ),
    "file rotated while its writer still uses the old one": ("test_rotation_loses_nothing",),
    "renamed to a name that is also followed": ("test_rotation_within_a_glob_reads_nothing_twice",),
    "file removed": ("test_files_that_are_gone_are_let_go",),
    "one of several files unreadable": ("test_a_file_that_cannot_be_read_keeps_no_other_waiting",),
    "bucket or Cloud Logging unreadable for a while": (
        "test_a_bucket_gives_new_objects_and_new_versions",
        "test_a_fault_is_said_and_the_next_look_goes_on",
    ),
    "late entry with an older timestamp": ("test_new_entries_and_late_ones_once_each",),
}
"""The tests of each row of the fault tables, by its first cell."""


def test_every_row_of_a_fault_table_has_a_test() -> None:
    tables = re.findall(r"^\| (?:fault|event) \| result \|\n\| --- \| --- \|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert [row.split(" | ")[0].removeprefix("| ") for table in tables for row in table.splitlines()] == list(TESTS)
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {name for names in TESTS.values() for name in names} <= defined


def test_the_widths_of_the_overlap_are_those_of_the_code() -> None:
    from goodput_cli.sources.cloud_logging import CLOCK_MARGIN_NS, OVERLAP_NS

    assert (OVERLAP_NS, CLOCK_MARGIN_NS) == (3600 * 10**9, 600 * 10**9)
    assert "**one hour**" in PAGE
    assert "**ten minutes**" in PAGE
