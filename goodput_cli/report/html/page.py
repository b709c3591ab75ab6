"""The frame of every HTML page: one self-contained file without network requests.

Text is added only through Jinja's autoescape, and text of a log passes `safe` before. The content security policy of
the page names its own style and scripts by their hashes. Nothing else can run, load or be sent, even if escaping
failed.

Expensive parts that are the same for every page are cached in the user's cache directory: the JavaScript of interactive
charts and compiled templates.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import BytecodeCache, Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from goodput_cli import __version__
from goodput_cli.vocabulary.text import finite, safe, shorten
from goodput_cli.whole_file import replace_file


def read(name: str) -> bytes | None:
    """Return the cached data of a name if it is complete and only its owner could have written it."""
    file = _file(name)
    if file is None:
        return None
    try:
        with file.open("rb") as stream:
            state = os.fstat(stream.fileno())
            digest, _, data = stream.read().partition(b"\n")
    except OSError:
        return None
    trusted = not hasattr(os, "getuid") or (state.st_uid == os.getuid() and not state.st_mode & 0o022)
    whole = sha256(data).hexdigest().encode() == digest
    return data if trusted and whole else None


def keep(name: str, data: bytes) -> None:
    """Cache data, ignoring errors: a page does not need the cache."""
    file = _file(name)
    if file is None:
        return
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(file, durable=False, mode=0o600) as stream:
            stream.write(sha256(data).hexdigest().encode() + b"\n" + data)


def _file(name: str) -> Path | None:
    """Return the path of a cached file; None without a cache directory."""
    from goodput_cli.sources.cache import cache_folder

    try:
        return cache_folder() / "pages" / name
    except (OSError, RuntimeError):
        return None


_FOLDER = "goodput_cli.report.html"
LONG = 300
"""Maximum length of unfolded log text. Longer text shows its beginning and end, and all of it when opened."""
_UNIT = re.compile(r"(?<=\d) (?=(?:%|USD|(?:h|min|s|d|ms|accelerator h|job h)\b))")
"""The space between a number and its unit, where a line must not break."""
_ACTING_IN_SCRIPTS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def document(template: str, *, scripts: Sequence[str] = (), more_style: str = "", back: str = "", **values: Any) -> str:
    """Return a whole page, ending with a newline.

    template: its file in `templates/`. scripts: built-in inline scripts, run in this order. more_style: added after the
    style of every page. back: address of the page that links to this one. values: of the template; text in them may
    contain anything.
    """
    style = resource("style.css") + more_style
    text = (
        _environment()
        .get_template(template)
        .render(
            **values,
            style=Markup(style),
            back=back,
            scripts=[Markup(_in_script(script)) for script in scripts],
            policy=content_policy(style, [_in_script(script) for script in scripts]),
            version=__version__,
        )
    )
    return text.rstrip("\n") + "\n"


@cache
def resource(name: str) -> str:
    """Return a file in the directory of this module."""
    return files(_FOLDER).joinpath(name).read_text(encoding="utf-8")


def script_data(value: Any) -> Markup:
    """Return a value as JSON for a script element of data. It can neither end the element nor be taken for markup."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for char, escaped in _ACTING_IN_SCRIPTS.items():
        text = text.replace(char, escaped)
    return Markup(text)


def content_policy(style: str, scripts: Sequence[str]) -> str:
    """Return the content security policy of a page: its own style and scripts, images inside the page, and nothing
    else.

    Charts set style attributes on their own elements, which cannot be listed by hash. They cannot load anything,
    because images and fonts have separate rules.
    """
    hashes = " ".join(f"'{_hash(script)}'" for script in scripts) or "'none'"
    rules = (
        "default-src 'none'",
        f"script-src {hashes}",
        f"style-src-elem '{_hash(style)}'",
        "style-src-attr 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


@cache  # a megabyte of script, and the same for each page of a site
def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@cache
def _in_script(script: str) -> str:
    """Return a built-in script or the chart library, with text escaped that would end the script element."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


class _TemplateCache(BytecodeCache):
    """Compiled templates, cached for the next page. by: versions of what compiled them; Jinja itself compares only
    their source."""

    def __init__(self, by: str) -> None:
        self._by = by

    def load_bytecode(self, bucket: Bucket) -> None:
        kept = read(self._name(bucket))
        if kept is not None:
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        keep(self._name(bucket), bucket.bytecode_to_string())

    def _name(self, bucket: Bucket) -> str:
        return f"template-{bucket.key[:16]}-{self._by}"


def _compiled() -> _TemplateCache | None:
    """Return the cache of templates; None if a version is unknown: of Python, Jinja, or this module with its
    options."""
    try:
        made_of = [sys.implementation.cache_tag, version("jinja2"), resource("page.py")]
    except (OSError, PackageNotFoundError):  # a frozen program
        return None
    return _TemplateCache(sha256(repr(made_of).encode()).hexdigest()[:16])


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("goodput_cli", "report/html/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        bytecode_cache=_compiled(),
    )
    environment.filters["shorten"] = lambda text: shorten(safe(text), LONG)
    environment.filters["width"] = _width
    environment.filters["united"] = lambda text: _UNIT.sub("\N{NO-BREAK SPACE}", text)
    environment.tests["long"] = lambda text: isinstance(text, str) and len(safe(text)) > LONG
    return environment


def _visible(value: Any) -> Any:
    """Return a value of a template before escaping: text without control or invisible characters."""
    return safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _width(share: float, full: float = 100) -> str:
    """Return a share of 0 to 1 as a length in a drawing of width `full`. Tiny values are made visible."""
    known = finite(share) or 0.0
    least = 0.4 if known > 0 else 0.0
    return f"{min(max(known * full, least), full):.4g}"


_CODE = "window.vegaEmbed = vegaEmbed;"


@cache
def library(vl_version: str) -> str:
    """Return the script for a version of Vega-Lite."""
    try:
        name = f"vega-{vl_version}-{version('vl-convert-python')}.js"
    except PackageNotFoundError:  # a frozen program has no package metadata
        return _made(vl_version)
    kept = read(name)
    if kept is not None:
        return kept.decode()
    made = _made(vl_version)
    keep(name, made.encode())
    return made


def _made(vl_version: str) -> str:
    import vl_convert  # importing it takes longer than writing a page; cached scripts avoid it

    bundle: str = vl_convert.javascript_bundle(_CODE, vl_version=vl_version)
    return bundle
