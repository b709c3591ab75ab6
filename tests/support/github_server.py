"""GitHub's comments of pull request 7 of o/r on loopback, kept in a file, as its API has them; for the token `t0ken`.

python -m tests.support.github_server FILE   prints its port, serves until its standard input ends
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.server_process import QuietHandler, ServerProcess, serve_until_input_ends

_COMMENTS = "/repos/o/r/issues/7/comments"
_PAGE = "https://github.com/o/r/pull/7#issuecomment-"
_BOT = {"type": "Bot", "login": "github-actions[bot]"}


@contextmanager
def github_server(kept: Path) -> Iterator[str]:
    """Yield the address of a server in a separate process. kept: the file of the comments, a list."""
    with ServerProcess("tests.support.github_server", str(kept)) as server:
        yield server.url


class Handler(QuietHandler):
    """Handler that lists, writes and changes comments. As for a token of the runner, it does not return the owner of
    the token."""

    def do_GET(self) -> None:  # noqa: N802
        asked = urlsplit(self.path)
        if asked.path == _COMMENTS and self._may():
            query = parse_qs(asked.query)
            size, page = int(query.get("per_page", ["30"])[0]), int(query.get("page", ["1"])[0])
            self.answer(200, json.dumps(_kept()[size * (page - 1) : size * page]))
        elif asked.path != _COMMENTS:
            self.answer(403, {"message": "Resource not accessible by integration"})

    def do_POST(self) -> None:  # noqa: N802
        given = self._given()
        if self.path == _COMMENTS and self._may():
            comments = _kept()
            number = len(comments) + 1
            _keep([*comments, {"id": number, "user": _BOT, **given}])
            self.answer(201, {"html_url": f"{_PAGE}{number}"})

    def do_PATCH(self) -> None:  # noqa: N802
        given, number = self._given(), int(self.path.removeprefix("/repos/o/r/issues/comments/"))
        if self._may():
            _keep([{**one, **given} if one["id"] == number else one for one in _kept()])
            self.answer(200, {"html_url": f"{_PAGE}{number}"})

    def _given(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _may(self) -> bool:
        if self.headers["Authorization"] == "Bearer t0ken":
            return True
        self.answer(403, {"message": "Resource not accessible by integration"})
        return False


def _kept() -> list[dict[str, Any]]:
    return list(json.loads(Path(sys.argv[1]).read_text()))


def _keep(comments: list[dict[str, Any]]) -> None:
    Path(sys.argv[1]).write_text(json.dumps(comments))


if __name__ == "__main__":
    serve_until_input_ends(Handler)
