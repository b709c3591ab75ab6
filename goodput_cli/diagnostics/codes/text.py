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
    "drafted_mapping": Code(
        "warning",
        "A mapping that was drafted: what its lines did not prove was assumed.",
        "As good as what was assumed: a count that is an index is one step off, another duration another answer.",
        "Look at the lines, and delete what you have looked at from `assumed` in the mapping.",
    ),
    "few_records": Code(
        "warning",
        "Text in which one or two records of steps stand.",
        "What was start-up and what a usual step takes is a guess, and with it the share of progress.",
        "Let the program log more often, or read a longer part of its log.",
    ),
    "counter_is_no_step": Code(
        "warning",
        "What counts steps counts something else: samples or tokens, or a number above 1,000,000,000.",
        "Times are right as far as records are; numbers of steps, and step times, are not those of steps.",
        "Say with a mapping which number counts steps, or let the program log its batch size.",
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
    "evidence_of_other_hosts": Code(
        "info",
        "Lines of a kernel about hosts that no line of the attempt names.",
        "None: they say nothing about this job.",
        "Nothing, unless the job ran there: then a line that names its host is missing (an agent's, NCCL's).",
    ),
    "hosts_unknown": Code(
        "info",
        "Lines of a kernel that may say why an attempt died, while no line says on which hosts it ran.",
        "None; a cause may be missing.",
        "Keep the output of the launcher, or NCCL_DEBUG=INFO: they name the hosts.",
    ),
    "evidence_without_clock": Code(
        "info",
        "Lines about a death of which nobody knows in which attempt they were said.",
        "None; a cause may be missing.",
        "Let stamps stand on the lines (kubectl logs --timestamps, dmesg --time-format iso, a logger's format).",
    ),
    "too_many_observations": Code(
        "info",
        "More lines about deaths than are kept of one source: the first and the last 5,000 are.",
        "None; a cause in the middle may be missing.",
        "Nothing: an error is caught and said again and again.",
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
    "tracker_beside": Code(
        "info",
        "A folder holds files of experiment trackers (Weights & Biases, MLflow) beside logs that give steps.",
        "None: the logs count, the trackers are not read.",
        "Name the folder of the tracker to read it instead.",
    ),
    "rows_lost_at_kill": Code(
        "warning",
        "A Weights & Biases run file without an end: its process was killed, or still runs. Records reach the disk by "
        "blocks of 32 KiB.",
        "What the process did since its last row is unknown: steps lost and when it died are lower bounds.",
        "A log of the launcher beside it shows when the process died; the text that it printed shows its steps.",
    ),
    "tracker_without_steps": Code(
        "warning",
        "Rows of a tracker of which none has a step above 0.",
        "When the run lived is known; its steps, and with them its goodput, are not.",
        "Log with a step (`wandb.log(…, step=n)`, `mlflow.log_metric(…, step=n)`), or read another log of the job.",
    ),
    "rows_not_steps": Code(
        "warning",
        "Rows of a tracker that name no step of training: the calls that logged are counted instead.",
        "Where each tenth step is logged, a step here is ten of them; a call for an evaluation counts too.",
        "Log the step of training (`train/global_step`, `step=`); amounts of time are right all the same.",
    ),
    "steps_too_high": Code(
        "warning",
        "A counter of steps goes beyond 1,000,000,000.",
        "It probably counts tokens, samples or time: numbers of steps, and what was lost in steps, mean those.",
        "Read another log of the job, or a mapping of your own whose `step` names the counter of steps.",
    ),
    "rewritten_history": Code(
        "info",
        "A history of Weights & Biases, exported from its server, of more than one process of a run.",
        "The server refuses rows of a lower step, so that redone steps may be missing: steps lost, and "
        "the time that they took, are lower bounds. An export may also be a sample of the rows.",
        "Read the folders of the run (`wandb/`) instead, where they are still there.",
    ),
    "tracker_runs_left_out": Code(
        "info",
        "Runs of MLflow that were deleted, or have fewer than two steps: tables of results, not trainings.",
        "None: they are no jobs.",
        "Log metrics with a step where such a run is a training.",
    ),
    "clock_begins_anew": Code(
        "warning",
        "Rows with the time since their process began, in which that time falls: another process goes on there.",
        "How long the job was down between the two is unknown, and counted as 0: the true window is longer.",
        "Read a log with times of day beside it.",
    ),
    "times_beside": Code(
        "info",
        "A file without any time was named, and something with times lies beside it.",
        "The file says nothing about time, and does not count.",
        "Name what the message names.",
    ),
    "same_run_twice": Code(
        "info",
        "Two logs hold the steps of one run at the same times: an experiment tracker beside text or event files, say.",
        "They are one job, with the steps of the better one; of the other only starts, ends and signs of life count.",
        "Nothing.",
    ),
}
