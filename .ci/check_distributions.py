"""`check_distributions.py DIR`: metadata and contents of what was built: both packages, each as wheel and source."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

from packaging.metadata import Metadata
from packaging.utils import parse_sdist_filename, parse_wheel_filename

ROOT = Path(__file__).parent.parent
SOURCES = {
    "goodput-cli": {"goodput_cli": ROOT / "goodput_cli"},
    "goodput-record": {
        "goodput_record": ROOT / "goodput_cli" / "record",
        "goodput_record/drop_in": ROOT / "goodput_cli" / "compat" / "drop_in",
    },
}
"""The packages, and which folder of the repository each of their folders is."""
ENDINGS = {".py", ".typed", ".html", ".css", ".js", ".toml"}


def main(folder: Path) -> None:
    """Says what was found to be right; fails with what is not."""
    built = sorted(path for path in folder.iterdir() if path.suffix in (".whl", ".gz"))
    kinds = {check(path) for path in built}
    wanted = {(name, kind) for name in SOURCES for kind in ("wheel", "sdist")}
    assert kinds == wanted, f"only {sorted(kinds)} were built"
    print(f"{len(built)} distributions hold what the repository holds: {', '.join(path.name for path in built)}")


def check(path: Path) -> tuple[str, str]:
    """A wheel or a source distribution; its name and kind."""
    wheel = path.suffix == ".whl"
    name, version = (parse_wheel_filename if wheel else parse_sdist_filename)(path.name)[:2]
    files = in_wheel(path) if wheel else in_sdist(path)
    text = next(text for file, text in files.items() if file.endswith((".dist-info/METADATA", "PKG-INFO")))
    metadata = Metadata.from_email(text, validate=True)
    assert metadata.version == version, path
    assert metadata.license_expression == "Apache-2.0", path
    assert metadata.description, f"{path.name}: its page would be empty"
    assert any("LICENSE" in file for file in files), f"{path.name}: no licence"
    missing = expected(name) - set(files)
    assert not missing, f"{path.name} lacks {sorted(missing)[:5]}"
    extra = {file for file in files if wheel and file.endswith(".py")} - expected(name)
    assert not extra, f"{path.name} has {sorted(extra)[:5]}, which is nowhere here"
    return name, "wheel" if wheel else "sdist"


def expected(name: str) -> set[str]:
    """Every file of the package as the repository has it."""
    return {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for package, folder in SOURCES[name].items()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in ENDINGS and "__pycache__" not in path.parts
    }


def in_wheel(path: Path) -> dict[str, bytes]:
    """Every file by its name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def in_sdist(path: Path) -> dict[str, bytes]:
    """The same of a source distribution, without the folder that all of it lies in."""
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        files = [(member.name.partition("/")[2], archive.extractfile(member)) for member in members]
        return {name: file.read() for name, file in files if file is not None}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
