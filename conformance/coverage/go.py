"""Functions, lines and blocks of a library in Go: the adapter is built with ``go build -cover``."""

from __future__ import annotations

import re
import shutil
import subprocess
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from conformance.clients.adapter.process import GO_MEASURED
from conformance.clients.adapters.registry import Client
from conformance.coverage.blocks import Block, BlockFunction, PlacedBlock, file_of
from conformance.coverage.document import BLOCKS, Branch, ClientCoverage, FileCoverage, document_of
from conformance.coverage.processes import ProcessMeter
from fakebrokers.errors import UsageError

NOTE = (
    "Go counts no branches. A block is a sequence of statements without a jump, so that a condition with two "
    "operands is one. Lines are those on which blocks lie; what is outside functions is not counted."
)
PROGRAM = "adapter"
BUILD_S = 600.0
_COUNTERS = re.compile(r"covcounters\.[0-9a-f]+\.(\d+)\.\d+")
_BLOCK = re.compile(r"(.+):(\d+)\.(\d+),(\d+)\.(\d+) (\d+) (\d+)")
_FUNCTION = re.compile(r"(.+):(\d+):\s+(\S+)\s+[\d.]+%")


class GoMeter(ProcessMeter):
    """Measures a client in Go, with a program of its own.

    Its ``protocol_modules`` are patterns of packages, as ``go build -coverpkg`` takes them.

    Raises:
        UsageError: It cannot be built here.
    """

    def __init__(self, client: Client, folder: Path) -> None:
        super().__init__(client, folder)
        program = (folder / PROGRAM).resolve()
        packages = ",".join((".", *client.protocol_modules))  # only a main package that counts has it written
        words = ("-covermode=atomic", f"-coverpkg={packages}", "-buildvcs=false", "-o", str(program), ".")
        _go(client, "build", "-cover", *words)
        self.client = msgspec.structs.replace(
            client,
            command=[str(program), *client.command[1:]],
            more_env={**client.more_env, GO_MEASURED: str(self.left)},
        )

    def pid_of(self, path: Path) -> int | None:
        found = _COUNTERS.fullmatch(path.name)
        return int(found[1]) if found else None

    def document(self) -> ClientCoverage:
        profiles = {label: self._profile(paths) for label, paths in self.by_label().items()}
        blocks: dict[PlacedBlock, bool] = {}
        arcs: dict[str, set[Branch]] = {}
        for label, text in profiles.items():
            found = blocks_of(text, self.client.protocol_modules)
            arcs[label] = {block.branch for block, is_executed in found.items() if is_executed}
            for block, is_executed in found.items():
                blocks[block] = blocks.get(block, False) or is_executed
        functions = self._functions(next(iter(profiles.values()), ""))
        self.forget_files()
        (self.folder / PROGRAM).unlink(missing_ok=True)
        branches = set().union(*arcs.values())
        files = files_of(blocks, functions)
        return document_of(self.client, files, self.counted(arcs), branches, unit=BLOCKS, note=NOTE)

    def _profile(self, counters: Iterable[Path]) -> str:
        """What ``go tool covdata`` makes of these and of what describes the program."""
        place, text = self.left / "chosen", self.left / "profile.txt"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for path in (*counters, *self.left.glob("covmeta.*")):
            (place / path.name).symlink_to(path)
        _go(self.client, "tool", "covdata", "textfmt", f"-i={place}", f"-o={text}")
        return text.read_text()

    def _functions(self, profile: str) -> str:
        """Where each function begins, in the words of ``go tool cover``."""
        if not profile:
            return ""
        path = self.left / "profile.txt"
        path.write_text(profile)
        return _go(self.client, "tool", "cover", f"-func={path}")


def _go(client: Client, *words: str) -> str:
    program = shutil.which("go")
    if program is None:
        raise UsageError(f"{client.name}: --coverage of a client in Go takes the program go")
    done = subprocess.run(
        [program, *words], cwd=client.folder, capture_output=True, text=True, timeout=BUILD_S, check=False
    )
    if done.returncode:
        raise UsageError(f"{client.name}: go {' '.join(words[:2])} fails: {done.stderr.strip()}")
    return done.stdout


def blocks_of(profile: str, patterns: Iterable[str]) -> dict[PlacedBlock, bool]:
    """The blocks with statements in a text profile, each with whether it was executed.

    Args:
        patterns: Of the packages that count.
    """
    found: dict[PlacedBlock, bool] = {}
    packages = tuple(f"{pattern.removesuffix('/...')}/" for pattern in patterns)
    for line in profile.splitlines():
        match = _BLOCK.fullmatch(line)
        if match is not None and match[6] != "0" and match[1].startswith(packages):
            block = PlacedBlock(match[1], *(int(match[number]) for number in range(2, 6)))
            found[block] = found.get(block, False) or match[7] != "0"
    return found


def files_of(blocks: Mapping[PlacedBlock, bool], functions: str) -> list[FileCoverage]:
    """The files.

    Args:
        functions: As ``go tool cover -func`` writes them.
    """
    begun: dict[str, list[tuple[int, str]]] = {}
    for match in map(_FUNCTION.fullmatch, functions.splitlines()):
        if match is not None:
            begun.setdefault(match[1], []).append((int(match[2]), match[3]))
    by_path: dict[str, dict[PlacedBlock, bool]] = {}
    for block, is_executed in blocks.items():
        by_path.setdefault(block.path, {})[block] = is_executed
    return [_file(path, found, sorted(begun.get(path, ()))) for path, found in sorted(by_path.items())]


def _file(path: str, blocks: Mapping[PlacedBlock, bool], begun: list[tuple[int, str]]) -> FileCoverage:
    of_function: dict[int, list[Block]] = {}
    lines: dict[int, bool] = {}
    for block, is_executed in sorted(blocks.items()):
        number = bisect_right(begun, block.first, key=lambda each: each[0]) - 1
        found = block.block(is_executed)
        of_function.setdefault(number, []).append(found)
        for line in range(block.first, block.last + 1):
            lines[line] = lines.get(line, False) or is_executed
    functions = [
        BlockFunction(
            begun[number][1] if number >= 0 else "",
            begun[number][0] if number >= 0 else found[0].first,
            max(block.last for block in found),
            found,
        )
        for number, found in of_function.items()
    ]
    return file_of(path, functions, lines)
