"""What the action of this repository (`action.yml`) says on GitHub: `action.py annotate JUNIT [WHAT]` an error
annotation of each gate that failed, with what it is judged against, `action.py comment NAME FILE...` one comment on the
pull request, written or brought up to date, with the heads of Markdown reports.

What it needs is in the environment, as the runner sets it, and GITHUB_TOKEN. A comment that cannot be written is said
as a warning, and is no failure: the gate has its own exit code.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

_MOST = 60_000
"""Characters of a comment: GitHub takes 65,536."""
_FOLDED = "\n<details"
_DETAILS = re.compile("<details.*?</details>", re.DOTALL)
_UNFOLDING = "<details><summary>Thresholds, largest costs and timeline</summary>\n\n%s\n\n</details>"
_PAGE = 100
_MOST_PAGES = 30
_TIMEOUT_S = 30


_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_TEXT, _IN_TITLE = str.maketrans(_ESCAPES), str.maketrans({**_ESCAPES, ":": "%3A", ",": "%2C"})


def annotate(junit: Path, what: str = "") -> None:
    """An error for each test case that failed or could not be judged, in the runner's words. what: follows its name."""
    for case in ElementTree.parse(junit).iter("testcase"):
        for outcome in (*case.iter("failure"), *case.iter("error")):
            title = f"{case.get('name')}{what and f' {what}'}: {outcome.get('message')}".translate(_IN_TITLE)
            print(f"::error title={title}::{(outcome.text or '').translate(_IN_TEXT)}")


def comment(name: str, files: list[Path]) -> None:
    """Says what was done, in words that the runner shows."""
    try:
        number = pull_request(json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_bytes()))
        if number is None:
            print("::notice::goodput: this run belongs to no pull request, so nothing is commented")
            return
        print(f"goodput: {write(name, number, [file.read_text(encoding='utf-8') for file in files])}")
    except urllib.error.HTTPError as error:
        needs = " (the job needs `permissions: pull-requests: write`)" if error.code in (401, 403, 404) else ""
        print(f"::warning::goodput: no comment on the pull request: GitHub answered {error.code}{needs}")
    except (OSError, KeyError, ValueError) as error:
        print(f"::warning::goodput: no comment on the pull request: {type(error).__name__}")


def pull_request(event: dict[str, Any]) -> int | None:
    """The number of the pull request that an event is about."""
    if "pull_request" in event:
        return int(event["pull_request"]["number"])
    issue = event.get("issue", {})
    return int(issue["number"]) if "pull_request" in issue else None


def write(name: str, number: int, reports: list[str]) -> str:
    """Write the comment of a name, or bring it up to date: what was done. A comment is ours if it begins with our mark
    and a bot or the owner of the token wrote it: nobody else's is ever changed."""
    mark = f"<!-- goodput: {re.sub('[^A-Za-z0-9 ._/-]', '_', name)} -->"
    body = f"{mark}\n{text_of(reports)}"
    ours = own_comment(number, mark)
    if ours is None:
        url = call("POST", f"issues/{number}/comments", {"body": body})["html_url"]
        return f"commented: {url}"
    url = call("PATCH", f"issues/comments/{ours}", {"body": body})["html_url"]
    return f"comment brought up to date: {url}"


def own_comment(number: int, mark: str) -> int | None:
    """The comment that an earlier run wrote."""
    own = owner()
    for page in range(1, _MOST_PAGES + 1):
        comments = call("GET", f"issues/{number}/comments?per_page={_PAGE}&page={page}")
        for comment in comments:
            writer = comment["user"]
            if str(comment["body"]).startswith(f"{mark}\n") and (writer["type"] == "Bot" or writer["login"] == own):
                return int(comment["id"])
        if len(comments) < _PAGE:
            return None
    return None


def owner() -> str | None:
    """Whose token it is; None for the runner's own, which may not ask."""
    try:
        return str(call("GET", "/user")["login"])
    except urllib.error.HTTPError:
        return None


def text_of(reports: list[str]) -> str:
    """Return the verdict, the comparison with the baseline, and the folded rest as far as there is room."""
    heads = [report.partition(_FOLDED)[0].strip() for report in reports]
    verdict, _, rest = heads[0].partition("\n")
    shown = [_shortened(f"##{head}", _MOST // 3) for head in (verdict, *heads[1:])]
    details = [_UNFOLDING % _shortened(rest.strip(), _MOST // 3)] if rest.strip() else []
    details += [part for report in reports for part in _DETAILS.findall(report)]
    parts = [*shown]
    for part in details:
        if sum(map(len, parts)) + len(part) > _MOST:
            break
        parts.append(part)
    run = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}".format_map(os.environ)
    return "\n\n".join([*parts, f"[The whole report is in the summary of the run.]({run})\n"])


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rpartition("\n\n")[0] + "\n\n*shortened*"


def call(method: str, path: str, content: dict[str, str] | None = None) -> Any:
    """What GitHub answers. path: of the API if it begins with a slash, else of the repository."""
    under = "" if path.startswith("/") else f"/repos/{os.environ['GITHUB_REPOSITORY']}/"
    request = urllib.request.Request(
        f"{os.environ['GITHUB_API_URL']}{under}{path}",
        data=None if content is None else json.dumps(content).encode(),
        method=method,
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        return json.loads(answer.read())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["annotate", junit, *what] if len(what) < 2:
            annotate(Path(junit), *what)
        case ["comment", name, *files] if files:
            comment(name, [Path(file) for file in files])
        case _:
            sys.exit(__doc__)
