"""Options and inputs that were removed, with a sentence about the replacement."""

from __future__ import annotations

OPTIONS = {
    "--what-if": (
        "advise",
        "--what-if was removed: `goodput advise LOG` ranks the improvements that would help most, and its table shows "
        "the goodput of each checkpoint interval",
    ),
    "--online": (
        "doctor",
        "--online was removed: to test credentials, read a log, for example with `goodput check gs://BUCKET/PATH`",
    ),
}
"""For each option: the command that had it, and the sentence."""
DATABASES = ("postgresql", "postgres", "mysql", "mariadb")
"""Schemes of MLflow databases that are no longer read."""
DATABASE = (
    "MLflow runs are no longer read from PostgreSQL or MySQL: read them from the tracking server, "
    "mlflow+https://HOST, or pass `mlflow.db` or `mlruns/`"
)
PROFILE_ENDINGS = (".yaml", ".yml")
"""Extensions of `LogProfile` documents."""
PROFILE = (
    "LogProfile YAML is no longer read as a mapping: write the mapping in TOML (docs/mappings.md); "
    "`goodput check --suggest LOG > my.toml` makes one from a log"
)


def removed_keyword(name: str) -> str | None:
    """Return the sentence for a removed keyword of the library, such as `what_if`; None for any other name."""
    _, sentence = OPTIONS.get(f"--{name.replace('_', '-')}", ("", None))
    return sentence
