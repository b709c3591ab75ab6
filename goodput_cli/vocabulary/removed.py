"""Options and inputs that were removed, with their replacement."""

from __future__ import annotations

OPTIONS = {
    "--what-if": (
        "advise",
        "`goodput advise LOG` ranks the improvements that would help most, and its table shows "
        "the goodput of each checkpoint interval",
    ),
    "--online": (
        "doctor",
        "to test credentials, read a log, for example with `goodput check gs://BUCKET/PATH`",
    ),
}
"""For each option: the command that had it, and what to use instead."""
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
    option = f"--{name.replace('_', '-')}"
    return f"{option} was removed: {OPTIONS[option][1]}" if option in OPTIONS else None
