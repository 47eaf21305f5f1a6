"""Archives of the classes that Spark loads (AppCDS): who analyses often waits less for Java.

A short analysis loads some twenty thousand classes, most of them out of jars, which is a quarter of its work.
An archive holds them ready to be mapped into memory. The first analysis with a certain Java and Spark has one
made in the background (`conformance.pipeline.train`), the later ones use it. Nothing depends on it: where
there is none, or Java finds that it does not fit, classes come from the jars as ever.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from conformance.pipeline.jars import spark_home

#: Set it to 0 to have archives neither made nor used. CI machines, which forget them, need not.
SWITCH = "FAKEBROKERS_CLASS_ARCHIVE"

#: The archives of a folder: the classes of Java itself (some runtimes come without), on top of them Spark's.
BASE, CLASSES = "java", "spark"

#: How the names of folders begin in which something is made; a crash may leave them behind.
UNFINISHED = "unfinished-"

#: The Java that does: 21 takes Spark's class path for another one than the archive was made for.
_JAVA = "17"

_TRIED = "tried"
_RETRY_AFTER = 24 * 3600.0  # seconds
_FORGET_AFTER = 30 * 24 * 3600.0  # seconds without use


def archive_folder(java_home: Path, spark: Path) -> Path | None:
    """The folder for archives of this Java and Spark, with a ``home`` for that Spark in it.

    It is in the user's cache, at a path that stays the same, for an archive knows its jars by their paths.

    Returns:
        None if archives are switched off, this Java does not get on with them, or the cache is not to be had.
    """
    if os.environ.get(SWITCH, "0" if os.environ.get("CI") else "1") == "0":
        return None
    try:
        java = _properties(java_home)
        if java.get("java.vm.specification.version") != _JAVA:
            return None
        folder = _cache() / _key(java, spark)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "home").exists():
            made = Path(tempfile.mkdtemp(dir=folder, prefix=UNFINISHED))
            spark_home(spark, made)
            made.rename(folder / "home")
        os.utime(folder)
    except (OSError, subprocess.SubprocessError, RuntimeError):  # RuntimeError: there is no home directory
        return None
    return folder


def keep(made: Path, folder: Path, name: str) -> Path:
    """Put an archive that is complete into its place, in one step."""
    place = folder / f"{name}-{made.stat().st_size}.jsa"
    made.rename(place)
    return place


def whole(folder: Path, name: str) -> Path | None:
    """An archive, if there is one and it has kept its size. Java 17 would crash over a part of one."""
    for place in folder.glob(f"{name}-*.jsa"):
        if place.name == f"{name}-{place.stat().st_size}.jsa":
            return place
    return None


def archive_options(folder: Path | None) -> list[str]:
    """The options for Java that make it use the archive in `folder`, if there is one."""
    classes = whole(folder, CLASSES) if folder and whole(folder, BASE) else None
    # An archive of other jars or another Java is passed over, and nothing is printed.
    return [f"-XX:SharedArchiveFile={classes}", "-Xshare:auto", "-Xlog:disable"] if classes else []


def start_training(folder: Path, java_home: Path | None) -> None:
    """Have an archive made, by a process that takes what time the others leave, unless there is one.

    Args:
        java_home: As in `java.find_java`.
    """
    tried = folder / _TRIED
    try:
        if archive_options(folder) or _age(tried) < _RETRY_AFTER:
            return
        tried.touch()
        _forget(folder.parent.iterdir(), _FORGET_AFTER)
        _forget(folder.glob(f"{UNFINISHED}*"), _RETRY_AFTER)
        paths = [str(Path(__file__).resolve().parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        java = {"JAVA_HOME": str(java_home)} if java_home else {}
        subprocess.Popen(
            [sys.executable, "-m", "conformance.pipeline.train", str(folder)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **java},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is not meant for it
        )
    except OSError:
        return
    print(
        f"For a quicker start next time, Spark's classes are archived in the background ({SWITCH}=0: not).",
        file=sys.stderr,
    )


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "fakebrokers" / "spark"


def _properties(java_home: Path) -> dict[str, str]:
    """What a Java says of itself."""
    said = subprocess.run(
        [java_home / "bin" / "java", "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=30,
        check=True,
    ).stderr
    pairs = (line.split(" = ", 1) for line in said.splitlines() if " = " in line)
    return {name.strip(): value for name, value in pairs}


def _key(java: Mapping[str, str], spark: Path) -> str:
    """What an archive depends on: the build of Java, and each jar."""
    facts = [java.get(name, "") for name in ("java.home", "java.vm.vendor", "java.vm.version")]
    for jar in sorted((spark / "jars").iterdir()):
        stat = jar.stat()
        facts.append(f"{jar} {stat.st_size} {stat.st_mtime_ns}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _forget(folders: Iterable[Path], after: float) -> None:
    for folder in folders:
        if _age(folder) > after:
            shutil.rmtree(folder, ignore_errors=True)


def _age(path: Path) -> float:
    """Seconds since it was last used; endless if it does not exist."""
    return time.time() - path.stat().st_mtime if path.exists() else float("inf")
