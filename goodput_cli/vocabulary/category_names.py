"""The names of categories in tables: full where there is room, short where there is none, and what is meant by one."""

from __future__ import annotations

from goodput_cli.vocabulary.categories import BY_NAME, OVERLAPPED, OVERLAPPED_TITLE, Category

_CUSTOM_TITLE = Category.CUSTOM.row.title


def title(name: str) -> str:
    """The short title of a category, or of time beside the ledger."""
    if name == OVERLAPPED:
        return OVERLAPPED_TITLE
    return (BY_NAME[name].row.title if name in BY_NAME else "") or name


NAMES = (*(one.id for one in Category), *(one.row.title for one in Category if one.row.title))
"""Every name of a category, full and short."""


def full_name(category: str, label: str | None) -> str:
    """A category with its label: `custom_badput_events:LABEL`."""
    return category if label is None else f"{category}:{label}"


def short_title(name: str, label: str | None) -> str:
    """The short title of a category; a labelled one as `custom:LABEL`, as it is asked for."""
    return title(name) if label is None else f"{_CUSTOM_TITLE}:{label}"


def brief_name(name: str) -> str:
    """A full name as its short title; a sign and a blank before it stay."""
    sign = name[:2] if name[1:2] == " " else ""
    category, _, label = name.removeprefix(sign).partition(":")
    return sign + short_title(category, label or None)


def category_named(name: str) -> tuple[Category, str | None] | None:
    """The category that is meant by a name as it stands in any table, full or short, and its label in upper case; None
    where it names none."""
    words, colon, label = name.partition(":")
    plain, label = " ".join(words.replace("_", " ").lower().split()), label.strip().upper()
    category = (
        next((one for one in Category if plain in (one.id.replace("_", " "), one.row.title)), None) if plain else None
    )
    if category is None or (colon and not (label and category.row.has_labels)):
        return None
    return category, label or None
