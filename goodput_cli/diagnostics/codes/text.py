"""What is noticed in text that programs print, and in formats that a mapping describes."""

from __future__ import annotations

from goodput_cli.diagnostics.codes.code import Code

TEXT: dict[str, Code] = {
    "other_output": Code(
        "info",
        "Lines of text, or JSON objects among them, that say nothing about time.",
        "None: programs print much else.",
        "Nothing. If some of them should count, `goodput check --suggest FILE` drafts a mapping.",
    ),
    "job_name_assumed": Code(
        "info",
        "Text names no job: it is called by its folder, or by its file where that is the only one.",
        "None.",
        "Give --job-name where another name is wanted.",
    ),
    "several_jobs_in_folder": Code(
        "warning",
        "Files of one folder overlap in time and record other steps at the same time, or name different jobs.",
        "They are different jobs, each named by its file.",
        "Name the files of one job alone, or put each job's files into a folder of its own.",
    ),
    "assumed_year": Code(
        "info",
        "Stamps without a year: they get that of the nearest stamp with one, else of the file's last change.",
        "None, unless the file was copied without its time of last change: then instants are whole years off.",
        "Give --year where another year is meant.",
    ),
    "no_clock": Code(
        "warning",
        "Lines with durations in a file in which no line has a time.",
        "Amounts are right; the last line is put at the file's last change, so that instants may be wrong.",
        "Say when it began (--start), or let stamps stand on the lines (kubectl logs --timestamps, a logger's format).",
    ),
    "step_tag": Code(
        "info",
        "An event file holds many scalars: the steps of one of them are those of training.",
        "Another scalar may be logged at other steps.",
        "Give --tensorboard-tag where another one is meant.",
    ),
    "tail_may_be_lost": Code(
        "info",
        "TensorBoard writes events every two minutes: a process that is killed loses those since the last time.",
        "Wasted time may be longer, and recovery shorter, by up to two minutes each.",
        "Nothing; a log of the launcher beside it shows when the process died.",
    ),
    "no_time_in_log": Code(
        "warning",
        "A file that trainers write holds steps and no time.",
        "It says nothing about where time went, and does not count.",
        "Use what the message names instead.",
    ),
    "runs_grouped": Code(
        "info",
        "Runs of ML Diagnostics whose names differ only in the time when they started.",
        "They are one job, each a life of it.",
        "Nothing.",
    ),
    "runs_not_grouped": Code(
        "warning",
        "Runs of ML Diagnostics are named by numbers, another one after each restart.",
        "Each counts as a job of its own: time between two lives is nobody's.",
        "Give --job-name: all runs of the source are that job then.",
    ),
    "host_silent": Code(
        "warning",
        "A host gives no more signs of life while others of its run do.",
        "None by itself; training may wait for that host.",
        "Look at the host.",
    ),
    "malformed_records": Code(
        "warning",
        "Records of an event file whose checksum is wrong, or that hold no event.",
        "They do not count; behind a record whose length is wrong nothing can be read.",
        "Copy the file again from where it was written.",
    ),
    "stamps_go_back": Code(
        "warning",
        "The stamps of a text go back by more than 2 s: the clock was set, or files were joined in another order.",
        "Each line keeps its own time; where the clock was set, time around the place is counted twice or lost.",
        "Look at the first place; name files that were joined one by one.",
    ),
    "missing_records": Code(
        "warning",
        "Records without a stamp whose step numbers jump: lines in between are missing.",
        "The jump takes no time: the job seems shorter than it was.",
        "Read the whole file, or one whose lines have stamps.",
    ),
}
