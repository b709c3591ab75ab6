"""What is noticed while the lines of a log are read."""

from __future__ import annotations

from goodput_cli.diagnostics.codes.code import Code

READING: dict[str, Code] = {
    "malformed_lines": Code(
        "error",
        "Lines that hold no JSON object: cut off, not UTF-8, nested too deep, or text of another program.",
        "The lines do not count. If they were events, what they said is missing.",
        "Look at the first places; if a writer was killed in the middle of a line, one line is lost, no more.",
    ),
    "not_a_log": Code(
        "info",
        "Files of a folder that are plainly no logs: one JSON value over several lines that names no job, or text in "
        "which no line says anything.",
        "None: they are not read.",
        "Name such a file if it is a log all the same.",
    ),
    "not_in_snapshot": Code(
        "warning",
        "What a snapshot cannot hold as it is: TensorBoard's event files, which are left out, and text of programs, of "
        "which it has the lines, but not the names and times of their files.",
        "Jobs, the year of stamps and the host of a line may differ from those of the sources.",
        "Keep such files themselves; a snapshot is for JSON, tables and Cloud Logging.",
    ),
    "damaged_store_part": Code(
        "warning",
        "A file of the store of `goodput fleet` is not as it was written, or cannot be read.",
        "None: what it held is read and accounted for again.",
        "Look at the disk; the file is put away, and nothing else is to be done.",
    ),
    "empty_logs": Code(
        "info",
        "Logs in which no line stands, beside others that `goodput jobs` lists.",
        "None: they hold no job that could be listed.",
        "See whether their jobs have started, and whether they write where you look.",
    ),
    "unused_label_rows": Code(
        "info",
        "Rows of --labels that fit no run.",
        "None by themselves; what they were meant for may be in the group (none).",
        "Compare the names of jobs and sources in them with those of the runs.",
    ),
    "one_name_in_two_clusters": Code(
        "warning",
        "Documents of two clusters, by --labels, hold one job name at the same time.",
        "They are one job: if they are two, each seems disrupted by the other.",
        "Tell them apart with --distinct-by cluster.",
    ),
    "truncated_file": Code(
        "error",
        "A packed file ends or breaks before its end.",
        "Everything before the break counts, what came after is lost: the job may seem to end too early.",
        "Fetch the file again, or wait until its writer has closed it.",
    ),
    "line_too_long": Code(
        "error",
        "A line is longer than --longest-line says (16 MiB).",
        "What the line has beyond that is left out, and it is most likely no record any more.",
        "Look at what was written there; if it is a log, say --longest-line.",
    ),
    "object_replaced": Code(
        "warning",
        "An object of a bucket was written again while it was read, and is read as it was when it was listed.",
        "None, if the listed state could still be had; the message says what is missing otherwise.",
        "Read again once its writer has finished.",
    ),
    "object_deleted": Code(
        "error",
        "An object of a bucket was deleted between the listing and the reading.",
        "Its lines do not count; the others do.",
        "Look who deletes the logs; a longer retention, or a snapshot (goodput fetch), keeps them.",
    ),
    "lookback_truncated": Code(
        "warning",
        "Cloud Logging was not read back to the job's beginning, or may hold older entries.",
        "What came before is not in the window: the job seems to start later than it did.",
        "Raise --lookback; entries beyond the log's retention are gone.",
    ),
    "bad_value": Code(
        "error",
        "An event holds a value that cannot be what its key says: a time out of range, a step that is no number.",
        "The event is dropped (a bad rank is dropped alone); its time goes to what the other events say, or to other.",
        "Repair the writer; times are epoch seconds, or ISO-8601 in resiliency logs.",
    ),
    "missing_job_name": Code(
        "error",
        "An event does not say which job it is of.",
        "It is dropped: it belongs to no job.",
        "Let the writer set job_name on every line. One that is written already gets a name by jq -c '.job_name = "
        '"NAME"\' LOG | goodput analyze - and the like.',
    ),
    "unplaced_duration": Code(
        "error",
        "A checkpoint line has a duration but no start time, and no envelope whose timestamp would be its end.",
        "That duration claims no time; the save or restore is missing from its category.",
        "Export the entries with their timestamps (gcloud logging read --format=json), not the payloads alone.",
    ),
    "unrecognised_lines": Code(
        "warning",
        "JSON objects that no log format recognises, or a text in which no line says anything.",
        "They do not count. Harmless if another program writes into the same log.",
        "If they should be events, compare their keys with docs/formats.md; `goodput check --suggest FILE` drafts a "
        "mapping of a text.",
    ),
    "unknown_event": Code(
        "warning",
        "A resiliency or native event of a type that is not known.",
        "It does not count: neither as a sign of life nor as an end.",
        "Use the types of docs/formats.md, or ignore it if the event says nothing about time.",
    ),
    "recorder_dropped": Code(
        "warning",
        "The recorder says that a place it writes to did not get some lines: a queue that was full, a disk, an API.",
        "What they said is missing; steps that were left out count with the step before them.",
        "Read a place that has everything (a local file, say), or let the recorder write to one beside this one.",
    ),
    "earlier_attempts_missing": Code(
        "warning",
        "A monitor that publishes values of whole jobs only (`--whole-job`) follows a log that begins above step 0.",
        "None of an answer; the monitor leaves out what is of the whole job. Rolling windows are published.",
        "Name the log of the earlier attempts with `--history`, or follow the place that has all of them.",
    ),
    "clock_step": Code(
        "warning",
        "The recorder says that the clock of its machine was set while the job ran.",
        "What a clock set forward skipped is `excluded`. One set back changes nothing within the attempt, whose stamps "
        "do not go back; the time to the next attempt may be off by the step.",
        "Let the machine set its clock before jobs start; compare the downtime beside it with another host's.",
    ),
    "format_plugin_failed": Code(
        "warning",
        "An installed log format could not be loaded.",
        "Lines of that format are not read.",
        "Repair or uninstall the package that is named.",
    ),
    "ambiguous_local_time": Code(
        "warning",
        "A local time occurs twice because clocks were set back.",
        "The first of the two is taken: events of the second hour stand an hour too early.",
        "Write timestamps with an offset or Z.",
    ),
    "nonexistent_local_time": Code(
        "warning",
        "A local time was skipped when clocks were set forward, so no clock of that zone showed it.",
        "It is read with the offset before the change and may be an hour off.",
        "Check --timezone: the log is probably of another zone. Better, write timestamps with an offset or Z.",
    ),
    "naive_timestamps": Code(
        "info",
        "Timestamps without a zone are read in the zone that --timezone names (default UTC).",
        "Durations are right unless clocks changed; with a wrong zone the instants, and any mix with lines that have "
        "a zone, are off by whole hours.",
        "Give --timezone, or let the writer add the offset.",
    ),
    "timezone_found": Code(
        "info",
        "Timestamps without a zone stand in entries of Cloud Logging, whose own timestamps show the zone: their "
        "difference is a whole number of quarters of an hour, day by day.",
        "These instants are read in that zone.",
        "None needed; --timezone names a zone yourself.",
    ),
    "unknown_keys": Code(
        "info",
        "Keys that the format does not know.",
        "None: they are ignored.",
        "Nothing, unless a key is misspelt: then what it says is missing.",
    ),
}
