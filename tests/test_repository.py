"""What the repository may hold: nothing of one machine, everything pinned, files of one subject."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.sources import parsed

LONGEST = 500

# Written so that the patterns do not match themselves.
FOREIGN = {
    # What stands before the name is left out: looking for it takes quadratic time in long words.
    "a package registry's host": re.compile(
        r"(?:pypi|pythonhosted|anaconda|npmjs|artifactory|devpi)[\w-]*\."
        r"(?:org|com|io|net|dev|local)\b",
        re.IGNORECASE,
    ),
    "a package index chosen for the user": re.compile(
        r"-{2}(?:extra-)?index-url\b|-{2}find-links\b"
    ),
    "somebody's home directory": re.compile(
        r"(?<![\w.])/(?:home|Users)/[a-z][\w.-]*/|[A-Z]:\\Users\\"
    ),
}


def listed_files(repository: Path) -> list[Path]:
    """The files that are tracked or about to be: not ignored."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(listing, cwd=repository, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a git checkout")
    paths = (repository / name for name in done.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def texts(repository: Path) -> dict[str, str]:
    found = {}
    for path in listed_files(repository):
        data = path.read_bytes()
        if b"\0" not in data:
            found[str(path.relative_to(repository))] = data.decode("utf-8")
    return found


def places_of_this_machine(repository: Path) -> list[str]:
    """Absolute paths that mean something here only."""
    places = {str(repository), str(Path(sys.prefix)), str(Path(sys.base_prefix))}
    return [place for place in places if len(Path(place).parts) > 2]


def foreign_parts(text: str) -> list[str]:
    return [
        f"{what}: {match.group()}"
        for what, form in FOREIGN.items()
        for match in form.finditer(text)
    ]


def test_nothing_names_a_registry_or_a_machine(repository: Path) -> None:
    here = places_of_this_machine(repository)
    wrong = []
    for name, text in texts(repository).items():
        wrong += [f"{name}: {part}" for part in foreign_parts(text)]
        wrong += [f"{name}: a path of this machine: {place}" for place in here if place in text]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "see https://files." + "pythonhosted" + ".org/x",
        "index = my-" + "pypi" + ".com",
        "--" + "index-url somewhere",
        "open('/" + "home/ann/data.xml')",
    ],
)
def test_foreign_parts_are_found(text: str) -> None:
    assert foreign_parts(text)


def test_xpath_and_urls_are_not_foreign() -> None:
    assert foreign_parts("/root/home/a //home/b https://www.w3.org/TR/xpath /usr/bin/env") == []


def pins(repository: Path) -> dict[str, list[Requirement]]:
    """The requirements of the lock by package; one package may have a pin for each Python."""
    text = (repository / "requirements.lock").read_text(encoding="utf-8")
    found: dict[str, list[Requirement]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        if line and not line.startswith((" ", "#")):
            requirement = Requirement(re.split(r"\s--hash=", line)[0].strip())
            assert "--hash=sha256:" in line, f"no hash: {requirement}"
            found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def declared(repository: Path) -> list[Requirement]:
    """All that pyproject.toml asks for, extras included."""
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [Requirement(text) for text in sum(extras, start=project["dependencies"])]
    return [each for each in wanted if each.name != project["name"]]  # the extra of all extras


def test_lock_pins_what_the_project_asks_for(repository: Path) -> None:
    pinned = pins(repository)
    for wanted in declared(repository):
        for pin in pinned.get(canonicalize_name(wanted.name), [Requirement("nothing==0")]):
            (exact,) = pin.specifier
            assert exact.operator == "=="
            assert pin.name != "nothing", f"{wanted} is not in the lock: run make lock"
            assert wanted.specifier.contains(exact.version), (
                f"{wanted} against {pin}: run make lock"
            )


def test_modules_say_what_they_are_and_stay_short(repository: Path) -> None:
    wrong = []
    for path in sorted((repository / "src").rglob("*.py")):
        module = parsed(path.read_text(encoding="utf-8"))
        if module.code_lines > LONGEST:
            wrong.append(f"{path.name}: over {LONGEST} lines of code; look for the seam")
        if not module.has_docstring:
            wrong.append(f"{path.name}: no docstring")
    assert not wrong, "\n".join(wrong)


def test_conformance_data_is_skipped_without_ci_and_missed_with_it(
    conformance: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "part").mkdir()
    monkeypatch.setenv("AXLOG_CONFORMANCE", str(tmp_path))
    assert conformance("part") == tmp_path / "part"
    for root in ("", str(tmp_path)):
        monkeypatch.setenv("AXLOG_CONFORMANCE", root)
        monkeypatch.delenv("CI", raising=False)
        with pytest.raises(pytest.skip.Exception, match="other"):
            conformance("other")
        monkeypatch.setenv("CI", "true")
        with pytest.raises(pytest.fail.Exception, match="other"):
            conformance("other")
