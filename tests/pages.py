"""Runs a page of the documentation: files are written, programs and commands do what stands below them.

* A block of code whose first line is a comment with a file's name is that file; a `python` block without one
  is a program that ends well.
* In a `console` block, what is printed has the lines below a command, in this order. Numbers may differ, and
  ``...`` stands for anything. A command that shows nothing has to end with 0.
* `fakebrokers serve` and `fakebrokers proxy` go on to the end of the page, on free ports.
* `pip install` and its like are left out.
* ``<!-- needs: rstream, curl, npm:moleculer -->`` anywhere on the page: without one of them it is skipped.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.eventually import PATIENCE_S

TOP = Path(__file__).parents[1]
DOCS = TOP / "docs"

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:#|//) ([\w./-]+\.\w+)\n")
INSTALLS = ("pip install", "npm install", "python -m venv", "python -m pip")
STAYS = re.compile(r"fakebrokers (?:serve|proxy) ")
ADDRESS = re.compile(r"(?<=127\.0\.0\.1:)\d+")
#: Where packages of npm are, if they were installed.
NPM = [
    *TOP.glob("conformance/clients/adapters/*/node_modules"),
    TOP / "conformance/helpers/node/node_modules",
]
#: For one command; the slowest take a few seconds on a machine that has nothing else to do.
LIMIT_S = 120
#: Libraries that are installed in several versions.
ALIASES = {"moleculer": "moleculer-0.15"}


class Block(NamedTuple):
    language: str
    text: str

    @property
    def file(self) -> str:
        """The name of the file that it is; "" if it is none."""
        found = FILE.match(self.text)
        return found[1] if found else ""


def blocks(page: Path) -> list[Block]:
    """All blocks of a page that are marked as code, in order."""
    return [Block(*found) for found in BLOCK.findall(page.read_text(encoding="utf-8"))]


def skip_without(page: Path) -> None:
    """Skip the test if something that the page needs is not there."""
    for line in re.findall(r"<!-- needs: (.*?) -->", page.read_text(encoding="utf-8")):
        for name in line.split(", "):
            if name.startswith("npm:"):
                there = npm_package(name[4:]) is not None
            else:
                there = importlib.util.find_spec(name) is not None or shutil.which(name) is not None
            if not there:
                pytest.skip(f"missing: {name}")


def npm_packages(name: str) -> list[Path]:
    """Where a package of npm is; several clients may have it, each in a version of its own."""
    return [each / ALIASES.get(name, name) for each in NPM if (each / ALIASES.get(name, name)).is_dir()]


def npm_package(name: str) -> Path | None:
    """The first of these places."""
    return next(iter(npm_packages(name)), None)


class Runner:
    """Runs the blocks of a page in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports: dict[str, str] = {}  #: of the page, and those that are used
        self.stack = ExitStack()
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env = {
            "PATH": path,
            "COLUMNS": "80",
            "HOME": str(folder),
            "PYTHONPATH": str(TOP),
            "LANG": "C.UTF-8",
        }

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.close()

    def run(self, page: Path) -> None:
        """The whole page."""
        for found in re.findall(r"npm:([\w@/-]+)", page.read_text(encoding="utf-8")):
            self.link_package(found)
        for block in blocks(page):
            if block.file:
                path = self.folder / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self.with_ports(block.text), encoding="utf-8")
            elif block.language == "python":
                self.check([sys.executable, "-W", "error", "-c", block.text])
            elif block.language == "console":
                self.console(block.text)
            elif block.text.startswith("--8<--"):  # a file of the repository, which has tests of its own
                assert (TOP / block.text.split('"')[1]).is_file()
            else:
                assert block.language == "text", f"nobody runs a block of {block.language}:\n{block.text}"

    def console(self, text: str) -> None:
        """Each command, and what it prints."""
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, promised = _command(part)
            if command.startswith(INSTALLS):
                continue
            if STAYS.match(command):
                self.start(command, promised)
            else:
                self.command(self.with_ports(command), promised)

    def command(self, command: str, promised: Sequence[str]) -> None:
        """One that ends."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.env, capture_output=True, text=True,
            check=False, timeout=LIMIT_S,
        )  # fmt: skip
        printed = done.stdout + done.stderr
        assert promised or done.returncode == 0, f"$ {command}\n{printed}"
        left = iter([without_numbers(line) for line in printed.splitlines()])
        for line in promised:
            found = line == "..." or any(fits(line, each) for each in left)  # reads on to the first that fits
            assert found, f"not printed: {line}\n\n$ {command}\n{printed}"

    def start(self, command: str, promised: Sequence[str]) -> None:
        """One that goes on; the ports that the page says stand for those that are free."""
        words = re.sub(r"(--(?:control|management|api|port)) \S+", r"\1 0", command).split()
        words = [sys.executable, "-m", "fakebrokers", *words[1:]]
        process = subprocess.Popen(words, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, text=True)
        self.stack.enter_context(_ended(process))
        assert process.stdout is not None
        ready = process.stdout.readline().strip()
        assert fits(" ".join(promised), without_numbers(ready)), ready
        self.ports |= dict(zip(ADDRESS.findall(promised[0]), ADDRESS.findall(ready), strict=True))

    def check(self, command: list[str]) -> None:
        """A program that ends well."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"

    def with_ports(self, text: str) -> str:
        """With the ports that are used."""
        return ADDRESS.sub(lambda found: self.ports.get(found[0], found[0]), text)

    def link_package(self, name: str) -> None:
        """Make a package of npm one of the folder."""
        package = npm_package(name)
        assert package is not None
        link = self.folder / "node_modules" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(package.resolve())


class _ended:
    """A process that ends with a block, well."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, *error: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        assert kind is not None or code == 0


def _command(part: str) -> tuple[str, list[str]]:
    """A command, with its continued lines, and the lines below it."""
    lines = part.rstrip("\n").split("\n")
    count = 1
    while lines[count - 1].endswith("\\") and count < len(lines):
        count += 1
    return "\n".join(lines[:count]), [line for line in lines[count:] if line.strip()]


def fits(promised: str, printed: str) -> bool:
    """Whether a line is as the page says; ``...`` stands for anything."""
    return (
        re.fullmatch(".*".join(map(re.escape, without_numbers(promised).split("..."))), printed) is not None
    )


def without_numbers(line: str) -> str:
    """Times, ports and counts differ from run to run, and so does the width of what stands around them."""
    return re.sub(r"[ =━─-]+", " ", re.sub(r"\d[\d.]*(?: m?s\b|s\b)?", "0", line)).strip()


def fakebrokers_commands(page: Path) -> Iterator[list[str]]:
    """The words of each command of ours that a page shows."""
    for block in blocks(page):
        for line in re.findall(r"^\$ fakebrokers (.*)$", block.text, re.MULTILINE):
            yield re.sub(r"\s#.*| > .*|\\$", "", line).split()
