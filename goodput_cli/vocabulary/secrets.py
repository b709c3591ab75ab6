"""Detection of secrets in log text, by the name before them or by their form (docs/causes.md).

Hiding too much would hide evidence: commit hashes, checksums, numbers and model names stay. The run time is linear in
the length of the text, not quadratic: everything that may be matched twice is bounded.
"""

from __future__ import annotations

import re

HIDDEN = "***"

_PASSWORDS = frozenset({"password", "passwords", "passwd", "passw", "passphrase", "passcode", "pwd", "userpass"})
"""Words before passwords, which are sometimes short."""
_ENDS_OF_PASSWORDS = ("password", "passwd", "passphrase", "passcode", "sshpass", "dbpass", "rootpass", "rediscli_auth")
"""Ends of names without a separator between their words: `PGPASSWORD`."""
_ENDS = ("secret", "token", "apikey", "secretkey", "accesskey")
_SHORT = frozenset({"pass", "pw", "auth"})
"""Last words of names of passwords, but of other names too: `forward_pass`."""
_WORDS = _PASSWORDS | {
    "secret", "secrets", "token", "key", "apikey", "accesskey", "secretkey", "privatekey", "authkey", "authtoken",
    "accesstoken", "credential", "credentials", "signature", "sig",
}  # fmt: skip
_OF_NO_SECRET = frozenset(
    {"error", "exception", "warning", "type", "dtype", "name", "path", "file", "dir", "size", "shape", "length"}
)
"""Last parts of names that mention a secret without containing one: `KeyError`, `token_file`."""
_NO_PASSWORD = frozenset({"", "none", "null", "true", "false", "yes", "no"})
_LEAST = 8
"""Minimum length of a secret that is detected by its name."""
_LEAST_MIXED, _LEAST_SPOKEN = 6, 20
"""The same after `pass` if it has letters and digits, and in sentences if it has only letters or only digits."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NUMBER = re.compile(r"[-+]?[\d.,_/:]+(?:[eE][-+]?\d+)?(?:[munµ]?s|%|[kKMGTB]i?B?|x)?(?:/\w{1,8})?")
_CALL = re.compile(r"[A-Za-z_][\w.]{0,80}[(\[]")

_PLACE = re.compile(r"[a-z0-9_-]*[/.][a-z0-9_./-]*")
"""Values of a bare `key` in a store: a path, or the name of a parameter."""
_PLAIN = re.compile(r"[A-Za-z]+[0-9]*(?:[_./-][A-Za-z0-9]+)+")
"""A name of several words, such as that of a test or a method."""
_NAME = re.compile(
    r"""(?:(?<![\w-])|(?<=%[0-9A-F]{2}))(?:(?<=\\)[nrt])?(?P<option>-{0,2})(?P<name>[A-Za-z_][\w-]*+)"""
    r"""(?:(?:\\{0,3}["'])?\]?\s{0,4}(?:=>|:=|[=:])\s{0,4}|(?:%22)?%3[AD](?:%22)?"""
    r"""|\\{0,3}["']\s{0,4},\s{0,4}\\{0,3}["']value\\{0,3}["']\s{0,4}:\s{0,4}"""
    r"""|(?P<blank>(?:["'],)?\s{1,4}))"""
)
"""A name followed directly by a separator: `name=`, `"name": `, `"name": "NAME", "value": `, `--name `, `'--name', `,
`name%3D`."""
_OPENS = re.compile(r"""(?:(?:\w{0,20}[Ss]ecret\w{0,20}|str|bytes|repr)\()?[bru]{0,2}(\\{0,3}["'])""")
_WORD = re.compile(r"""(?:(?!%2[26])[^\s"',;&<>)}\]\\])++""")
_SPOKEN = re.compile(
    r"(?i)(?P<before>(?:\b|(?<=_))(?:token|secret|password|passwd|passphrase|passcode|credentials?|authorization"
    r"|(?:secret[ _-]access|api|access|secret|private|account|license|encryption|auth|storage)[ _-]?key)"
    r"(?:\s{1,4}for\s{1,4}[^\s:]{1,80})?(?::?\s{1,4}(?:(?:is|was|of)\s{1,4}|=\s{0,4})?)[\"'`(]?)"
    r"(?P<word>[^\s\"'`,;)]{6,})"
)
"""A secret in a sentence: `API key 0123…`."""
_HEADER = re.compile(
    r"""(?i)(?<![\w-])((?:proxy-)?authorization\\{0,3}["']?\s{0,4}[=:]\s{0,4}\\{0,3}["']?)(?:[a-z][\w-]{0,30}\s{1,4})?"""
    r"""[^\s"',;\\]++"""
)
_COOKIE = re.compile(r"""(?i)(?<![\w-])((?:set-)?cookie\\{0,3}["']?\s{0,4}[=:]\s{0,4}\\{0,3}["']?)[^"'\\]+""")
_NAMES = ("secret", "token", "key", "pass", "pwd", "pw", "credential", "signature", "sig", "auth")
_PREFIXES = (
    "hf_", "npm_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "gsk_", "r8_", "dapi", "_pat_", "sk-", "k_live_", "k_test_",
    "xox", "xapp-", "nvapi-", "pypi-", "dop_v1_", "gocspx-", "akia", "asia", "aiza", "ya29.", "hvs.", "hvb.", "sg.",
    "eyj", "glsa_", "glc_", "gl", "tskey-", "lsv2_", "pplx-", "xai-", "tgp_v1_", "shpat_", "whsec_", "lin_api_", "pul-",
    "atatt", "age-secret-key-", "atlasv1.",
)  # fmt: skip
_PREFIXED = re.compile(
    r"\b(?:(?:hf_|npm_|gh[oprsu]_|gsk_|r8_|dapi|glsa_|glc_|shpat_|whsec_|lin_api_|pul-|tgp_v1_)"
    r"(?=[a-z]{0,40}[A-Z0-9])[A-Za-z0-9_]{8,}"
    r"|(?:github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct)-|gloas-|sk-|[rs]k_(?:live|test)_|xox[a-z][-.]"
    r"|xapp-|nvapi-|pypi-|dckr_pat_|dop_v1_|GOCSPX-|tskey-|lsv2_[a-z]{2}_|pplx-|xai-|ATATT3)"
    r"(?=[a-z_-]{0,40}[A-Z0-9])[A-Za-z0-9_-]{8,}"
    r"|A[KS]IA[0-9A-Z]{12,}|AIza[\w-]{20,}|ya29\.[\w.-]{8,}|hv[bs]\.[\w-]{16,}|SG\.[\w-]{10,}\.[\w-]{10,}"
    r"|AGE-SECRET-KEY-[0-9A-Z]{20,}|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{20,}"
    r"|(?<!-)eyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*){0,3})"
)
_PEM = re.compile(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----).*?(?=-----END|\Z)", re.DOTALL)
_PEM_LINE = re.compile(r"^(\s*)(?=[^\s\d]*\d)(?=[^\sa-z]*[a-z])(?=[^\sA-Z]*[A-Z])[A-Za-z0-9+/]{64}(?=\s*$)")
_ACCOUNT = re.compile(r"(://)[^\s/?#@:\"'<>]{0,200}:(?!\d{1,5}[/?#])[^\s\"'<>]{0,1000}@")
_USER = re.compile(r"(?i)(https?://)[^\s/?#@\"'<>]{1,1000}@")
_HOOK = re.compile(
    r"(?i)((?:hooks\.slack\.com/\w{1,20}|discord(?:app)?\.com/api/webhooks|webhook\.office\.com/webhookb2"
    r"|api\.telegram\.org)/)[^\s\"'<>]+"
)
_BEARER = re.compile(r"(?i)\b(bearer\s{1,4})[^\s\"',;]+")
_BASIC = re.compile(r"\b((?i:basic)\s{1,4})(?=\w{0,40}[A-Z0-9])[A-Za-z0-9+/_-]{8,}={0,2}")
_CURL = re.compile(r"(?s)(\bcurl\b.{0,400}?\s(?:-u|--user|--proxy-user)[\s=]{0,4}[\"']?[^\s:\"']{1,100}:)[^\s\"']+")
_COMMAND = re.compile(
    r"(\b(?:(?:mysql\w*|mariadb[\w-]{0,20}|sshpass|mongo\w*|(?:docker|podman|skopeo|az|oc|helm registry|buildah) login)"
    r"\b[^|;&]{0,400}?\s-p|redis-cli\b[^|;&]{0,400}?\s-a|ldap\w{1,20}\b[^|;&]{0,400}?\s-w)\s{0,4}[\"']?)[^\s\"']+"
)
"""Commands with a password after a short option."""
_LOGIN = re.compile(
    r"(\b(?:wandb|vault|comet|neptune|huggingface-cli|hf auth) login"
    r"(?:\s{1,4}--?[\w-]{1,20}(?:=\S{1,80})?){0,3}\s{1,4})(?=\S{0,60}\d)[\w.-]{8,}"
)
_PIPED = re.compile(
    r"(\becho\s{1,4}(?:-n\s{1,4})?[\"']?)[^\s\"'|]{1,200}(?=[\"']?\s{0,4}\|[^|]{0,40}(?:\blogin\b|\bsudo -S))"
)
_WRAPPED = re.compile(r"(\bSecret(?:Str|Bytes)?\(b?[\"'])[^\"']+")
_PASS_OF = re.compile(r"(\bpass:)(?=\S)[^\s\"']+")
"""The form of OpenSSL: `-passin pass:…`."""
_FORMS: tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...] = (
    (("private key",), _PEM, rf"\1{HIDDEN}"),
    (("",), _PEM_LINE, rf"\1{HIDDEN}"),
    (("://",), _ACCOUNT, rf"\1{HIDDEN}@"),
    (("://",), _USER, rf"\1{HIDDEN}@"),
    (("hooks.slack.com", "/api/webhooks", "webhook.office.com", "telegram.org"), _HOOK, rf"\1{HIDDEN}"),
    (("authorization",), _HEADER, rf"\1{HIDDEN}"),
    (("bearer",), _BEARER, rf"\1{HIDDEN}"),
    (("basic",), _BASIC, rf"\1{HIDDEN}"),
    (("cookie",), _COOKIE, rf"\1{HIDDEN}"),
    (("curl",), _CURL, rf"\1{HIDDEN}"),
    ((" -p", " -a", " -w"), _COMMAND, rf"\1{HIDDEN}"),
    ((" login ",), _LOGIN, rf"\1{HIDDEN}"),
    (("echo ",), _PIPED, rf"\1{HIDDEN}"),
    (("secret",), _WRAPPED, rf"\1{HIDDEN}"),
    (("-pass",), _PASS_OF, rf"\1{HIDDEN}"),
    (_PREFIXES, _PREFIXED, HIDDEN),
)
"""For each form: lowercase texts (every matching line contains at least one), the pattern, and the replacement."""


def without_secrets(text: str) -> str:
    """Return the text with `***` instead of secrets."""
    small = text.lower()
    for hints, pattern, instead in _FORMS:
        if any(hint in small for hint in hints):
            text = pattern.sub(instead, text)
    return _without_spoken(_without_named(text)) if any(hint in small for hint in _NAMES) else text


def _without_named(text: str) -> str:
    parts: list[str] = []
    kept, place = 0, 0
    while (name := _NAME.search(text, place)) is not None:
        place = name.end()
        if (name["blank"] and not name["option"]) or not _names_a_secret(name["name"]):
            continue
        begin, end = _value_at(text, place)
        if _is_secret(name["name"], text[begin:end]):
            parts += [text[kept:begin], HIDDEN]
            kept = place = end
    return "".join([*parts, text[kept:]])


def _value_at(text: str, place: int) -> tuple[int, int]:
    """Return begin and end of the value at a position. A quoted value ends at its closing quote."""
    opens = _OPENS.match(text, place)
    if opens is not None:
        end = text.find(opens[1], opens.end())
        return opens.end(), len(text) if end < 0 else end
    word = _WORD.match(text, place)
    return (place, place) if word is None else word.span()


def _names_a_secret(name: str) -> bool:
    parts = _parts(name)
    if not parts or parts[-1] in _OF_NO_SECRET:
        return False
    return not _WORDS.isdisjoint(parts) or parts[-1] in _SHORT or name.lower().endswith((*_ENDS_OF_PASSWORDS, *_ENDS))


def _parts(name: str) -> list[str]:
    return [part.lower() for part in _PARTS.findall(name)]


def _is_secret(name: str, value: str) -> bool:
    parts = _parts(name)
    of_password = not _PASSWORDS.isdisjoint(parts) or name.lower().endswith(_ENDS_OF_PASSWORDS)
    if of_password or (parts[-1] in ("pass", "pw") and len(parts) > 1 and name.isupper()):
        return value.lower() not in _NO_PASSWORD and not (name.lower().endswith("pwd") and value.startswith("/"))
    if _NUMBER.fullmatch(value) or _CALL.match(value) or (name.lower() == "key" and _PLACE.fullmatch(value)):
        return False
    if parts[-1] in _SHORT and _WORDS.isdisjoint(parts):
        least = _LEAST if parts[-1] == "auth" else _LEAST_MIXED  # `auth=oauth2`
        return len(value) >= least and _is_mixed(value) and not _PLAIN.fullmatch(value)
    return len(value) >= _LEAST


def _is_mixed(word: str) -> bool:
    return any(one.isdigit() for one in word) and any(one.isalpha() for one in word)


def _without_spoken(text: str) -> str:
    parts: list[str] = []
    kept, place = 0, 0
    while (found := _SPOKEN.search(text, place)) is not None:
        word = found["word"]
        if word.startswith(HIDDEN) or _NUMBER.fullmatch(word) or not (_is_mixed(word) or len(word) >= _LEAST_SPOKEN):
            place = found.start() + 1  # the word may itself be the name of a secret
            continue
        parts += [text[kept : found.start("word")], HIDDEN]
        kept = place = found.end()
    return "".join([*parts, text[kept:]])
