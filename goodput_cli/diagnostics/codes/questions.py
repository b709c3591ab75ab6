"""What is noticed when a question is answered: runs that do not compare, advice that has too little to go by."""

from __future__ import annotations

from goodput_cli.diagnostics.codes.code import Code

COMPARING: dict[str, Code] = {
    "methods_differ": Code(
        "warning",
        "Two sides of a comparison were not measured in the same way: another reference step time, or other options.",
        "Part of the difference comes from the measuring and not from the runs.",
        "Give both sides the same options, --reference-step-time first of all; save a saved analysis anew with them.",
    ),
}

ADVICE: dict[str, Code] = {
    "replay_differs": Code(
        "warning",
        "The record of the job, replayed as it was, does not give the record.",
        "No replay is shown, and what rests on one is not recorded; the curve, and levers that are exact, hold.",
        "If the message gives an amount, report it with the log: it is a bug. A job that has just lost most of what it "
        "did is advised later.",
    ),
    "save_cost_unknown": Code(
        "info",
        "No line says how long a save blocks.",
        "No interval is advised.",
        "Log step_finished beside checkpoint_saved, use Orbax' structured log, or give --save-seconds.",
    ),
    "few_failures": Code(
        "info",
        "Fewer than three failures ended training.",
        "The rate of failures is little more than a guess: the advice is never to change.",
        "Ask again when the job has run longer, or give the cluster's --mtbf.",
    ),
    "one_interval_only": Code(
        "info",
        "Only one saved step was seen.",
        "Today's interval of saves is taken from its distance to the first step trained, and may be another.",
        "Give it with --interval-now, or ask again when the job has saved twice.",
    ),
    "early_failures": Code(
        "info",
        "More failures came soon after a start than a constant rate of failures gives by chance in one case of 100.",
        "The formulas of Young and Daly do not hold; the curve, which takes the failures as they came, does.",
        "Look why starts do not hold: the same bad host, or an error that comes with every start.",
    ),
    "older_restored": Code(
        "info",
        "A newer checkpoint was complete, and an older one was restored.",
        "More was lost than the interval of saves costs: newest_checkpoint says how much.",
        "Look whether the newer checkpoint could not be read, or going back was meant.",
    ),
    "saved_unseen": Code(
        "info",
        "Training went on from a checkpoint that no line shows.",
        "What such a failure loses is kept as it was at every interval: it says nothing about how often to save.",
        "Log every save, those on the way out and of other tiers too.",
    ),
    "never_ends": Code(
        "warning",
        "With such failures the job does not come to its end, however often it saves.",
        "No interval is advised; what the levers save is known.",
        "Look at what the failures have in common, first of all at those soon after a start.",
    ),
    "save_latency_unknown": Code(
        "info",
        "Saves go on behind their blocking part, and no line says until when.",
        "They are taken to be usable at once: the interval that is advised may be a little short.",
        "Log checkpoint_saved when a save is complete.",
    ),
}
