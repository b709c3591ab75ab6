"""What is noticed while the lines of a log are read.

What is noticed in text that programs print, and in formats that a mapping describes.
"""

from __future__ import annotations

from goodput_cli.diagnostics.codes import Code

READING: dict[str, Code] = {
    "malformed_lines": Code(
        "error",
        "Lines that hold no JSON object: cut off, not UTF-8, nested too deep, or text of another program.",
        "The lines do not count. If they were events, what they said is missing.",
        "Look at the first places; if a writer was killed in the middle of a line, one line is lost, no more.",
    ),
    "not_a_log": Code(
        "info",
        "Files of a folder or a glob that are plainly no logs: one JSON value over several lines that names no job, "
        "text in which no line says anything, or what goodput wrote: answers, and what a monitor publishes.",
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
    "snapshot_changed": Code(
        "warning",
        "The lines of a snapshot are not those that its manifest was written for.",
        "Every number is that of the changed lines; what its sources had to say when it was made is left out.",
        "Make it anew with `goodput fetch --force`; if it was changed on purpose, remove its `.manifest`.",
    ),
    "damaged_store_part": Code(
        "warning",
        "A file of the store of `goodput fleet` is not as it was written, or cannot be read.",
        "None: what it held is read and accounted for again.",
        "Look at the disk. The file was set aside; nothing else is needed.",
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
        "Time in which lines of steps were lost is not known: it is `other`, not productive (accounting §5). With a "
        "reference step time steps count by their numbers, as always.",
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
    "same_steps_in_files": Code(
        "warning",
        "Files of one folder record the same steps at the same times, and no text names the job: their names differ in "
        "more than numbers, or the losses that they print do, and no rank or node is in a name or in front of lines.",
        "They are read as one job, of which each process prints: each step counts once, and the deaths of all files "
        "are those of one job. If they are copies of a job that were started together, the answer is of none of them.",
        "If each is a job of its own, name one file alone (goodput analyze FILE), or give each a folder of its own. If "
        "they are processes of one job, nothing: --job-name says so.",
    ),
    "several_runs_in_file": Code(
        "warning",
        "Lines of one file go on with two counts of steps in turns, with other losses for the same steps, and name no "
        "rank, no micro-batch and no evaluation.",
        "They are read as one job, of which each process prints: each step counts once. If several runs write into the "
        "file (`python a.py & python b.py` with one redirection, array tasks with one output), the answer is of none "
        "of them; where one ends before the others it may show disruptions that never were.",
        "If they are runs of their own, give each an output of its own (%j or %A_%a in the name, with Slurm). If they "
        "are ranks with losses of their own, nothing: --job-name says so.",
    ),
    "earlier_runs": Code(
        "warning",
        "Text files of a folder begin at the first step, and restore nothing, more than 14 days after the others were "
        "last written to, and no text names the job.",
        "They are a run of their own, and the last one is analysed where no job is named; the earlier are jobs of "
        "their own, named by folder and file.",
        "If they are one job, say --join; an earlier run is had with --job-name.",
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
        "Each counts as a job of its own: time between two lives belongs to no job.",
        "Give --job-name: all runs of the source are that job then.",
    ),
    "host_silent": Code(
        "warning",
        "A host gives no more signs of life while others of its run do.",
        "None by itself; training may wait for that host.",
        "Look at the host.",
    ),
    "cluster_objects_unused": Code(
        "warning",
        "Objects of Kubernetes (pods, Jobs, JobSets, Workloads) that are of no job of the log, or of another time.",
        "None: time in the queue and ends are as the log alone has them.",
        "Name the job with -j as its JobSet or Job is called, say in which zone stamps without one are (--timezone), "
        "and take objects that were kept while the job was there.",
    ),
    "cluster_forgets": Code(
        "info",
        "Objects of Kubernetes keep the last change only: the last end of a container, the last admission.",
        "Ends, and time in the queue, of earlier attempts are not recorded: unknown, not zero.",
        "Keep the objects of each attempt (`kubectl get -w -o json`), and name all files: what each tells counts.",
    ),
    "evidence_of_other_hosts": Code(
        "info",
        "Lines of a kernel about hosts that no line of the attempt names.",
        "None: they say nothing about this job.",
        "Nothing, unless the job ran there: then a line that names its host is missing (an agent's, NCCL's), and "
        "--hosts-of-job says it.",
    ),
    "hosts_unknown": Code(
        "info",
        "Lines of a kernel that may say why an attempt died, while no line says on which hosts it ran.",
        "None; a cause may be missing.",
        "Name them with --hosts-of-job. Keep the output of the launcher, or NCCL_DEBUG=INFO: they name the hosts.",
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
        "Rows of a tracker that name no step of training: the calls that logged are counted instead, but in bursts.",
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
    "clock_jumps": Code(
        "warning",
        "Stamps jump between two steps that follow one another, by an hour forward or by quarters of an "
        "hour back, to within a step: a clock was set, or lines are of two zones.",
        "If it was so, that time is none of the job: window and stall are too long by it, and where stamps go back, "
        "attempts and lost steps are made up.",
        "Say --timezone where a zone changed its clocks (Europe/Berlin, America/New_York …); read the lines of one "
        "zone alone; let stamps have an offset.",
    ),
    "clock_begins_anew": Code(
        "warning",
        "A log without times of day in which another process goes on: the time since it began falls, the "
        "step does, or a line says that one started.",
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
        "They are one job, with the steps of the better one; of the other only starts, ends and signs of life count. "
        "Of a tracker beside a log of events (the recorder's, or goodput's own) nothing does: that log says all of it.",
        "Nothing.",
    ),
}
