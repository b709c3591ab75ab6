"""HTML pages as tests read them: their elements, tables and attributes, by the parser of the standard library."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

_EMPTY = frozenset(("meta", "link", "br", "img", "input", "hr"))


@dataclass
class Element:
    """An element and what is in it; text is a child as well."""

    name: str
    attributes: dict[str, str | None]
    children: list[Element | str] = field(default_factory=list)

    def all(self, name: str) -> list[Element]:
        """Elements of a name at any depth, in the order of the page."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                found += [child, *child.all(name)] if child.name == name else child.all(name)
        return found

    def by_id(self, identity: str) -> Element:
        return next(one for one in self.every() if one.attributes.get("id") == identity)

    def every(self) -> list[Element]:
        inner = [element for child in self.children if isinstance(child, Element) for element in child.every()]
        return [self, *inner]

    @property
    def text(self) -> str:
        """Return all text in it; folded text appears once, in full."""
        if self.name == "details" and self.attributes.get("class") == "long":
            return self.all("bdi")[-1].text
        return "".join(child if isinstance(child, str) else child.text for child in self.children).strip()

    def rows(self) -> list[list[str]]:
        """The cells of a table's body, row by row."""
        return [
            [cell.text for cell in row.children if isinstance(cell, Element)]
            for body in self.all("tbody")
            for row in body.all("tr")
        ]

    def pairs(self) -> list[tuple[str, str]]:
        """Names and values of the definition lists in it."""
        return [
            (name.text, value.text)
            for group in self.all("dl")
            for name, value in zip(group.all("dt"), group.all("dd"), strict=True)
        ]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in _EMPTY:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> closes <{self.open[-1].name}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read_page(text: str) -> Element:
    """The page as a tree; every element in it must be closed in its order."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert len(reader.open) == 1, f"<{reader.open[-1].name}> is not closed"
    return reader.root


def page_text(page: Path) -> str:
    """A page as it reads: no entities, and nothing that keeps a number and its unit in one line."""
    return html.unescape(page.read_text(encoding="utf-8")).replace("\N{NO-BREAK SPACE}", " ")
