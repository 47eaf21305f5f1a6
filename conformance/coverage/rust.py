"""Functions, lines and blocks of crates in Rust: the adapter is built with ``-C instrument-coverage``."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from conformance.clients.adapter.process import RUST_MEASURED
from conformance.clients.adapters.registry import Client
from conformance.clients.packages.cache import cache, output_of
from conformance.coverage.blocks import BlockFunction, PlacedBlock, file_of, has_code
from conformance.coverage.document import BLOCKS, Branch, ClientCoverage, FileCoverage, document_of
from conformance.coverage.processes import ProcessMeter
from fakebrokers.errors import UsageError

NOTE = (
    "The stable compiler counts no branches. A block is what LLVM calls a region: code that is executed as "
    "a whole, an operand of a condition, or the way out at a question mark."
)
PROGRAM = "adapter"
KIT = "fakebrokers-kit"
TOOLS = ("llvm-profdata", "llvm-cov")
EXPORT_S = 120.0
_NAME = re.compile(r"(\d+)-\d+\.profraw")
_CODE = 0  # the kind of a region
_FUNCTION = re.compile(r"\bfn\s+(\w+)")
#: What functions are in; a module has no name here.
_OWNER = re.compile(r"\s*(?:pub\S*\s+)?(?:impl(?:<.*?>)?\s+(?:.*\sfor\s+)?&?(\w+)|trait\s+(\w+)|mod\b)")

#: What cargo calls in place of the compiler, with the compiler and its arguments: only what counts is
#: instrumented, and what writes it down.
_WRAPPER = """#!/bin/sh
case " $* " in
{patterns}) exec "$@" -C instrument-coverage ;;
esac
exec "$@"
"""


class RustMeter(ProcessMeter):
    """Measures a client in Rust, with a program of its own.

    Its ``protocol_modules`` are crates.

    Raises:
        UsageError: It cannot be built here, or nothing here reads what it would write.
    """

    def __init__(self, client: Client, folder: Path) -> None:
        self._tools = tools(client.name)
        super().__init__(client, folder)
        self._program = (folder / PROGRAM).resolve()
        shutil.copy2(_built(client), self._program)
        self.client = msgspec.structs.replace(
            client,
            command=[str(self._program), *client.command[1:]],
            more_env={**client.more_env, RUST_MEASURED: str(self.left / "%p-000000.profraw")},
        )

    def pid_of(self, path: Path) -> int | None:
        found = _NAME.fullmatch(path.name)
        return int(found[1]) if found else None

    def document(self) -> ClientCoverage:
        files = self.by_label()
        crates = self._crates()
        arcs: dict[str, set[Branch]] = {}
        for label, paths in files.items():
            found = blocks_of(self._export(paths), crates)
            arcs[label] = {
                block.branch for each in found for block, is_executed in each.items() if is_executed
            }
        merged = [path for paths in files.values() for path in paths]
        functions = blocks_of(self._export(merged), crates) if merged else []
        self.forget_files()
        self._program.unlink(missing_ok=True)
        branches = set().union(*arcs.values())
        return document_of(
            self.client, files_of(functions), self.counted(arcs), branches, unit=BLOCKS, note=NOTE
        )

    def _crates(self) -> list[str]:
        """How the folders of the crates' sources are named."""
        lock = tomllib.loads((Path(self.client.folder) / "Cargo.lock").read_text("utf-8"))
        return [
            f"/{each['name']}-{each['version']}/"
            for each in lock["package"]
            if each["name"] in self.client.protocol_modules
        ]

    def _export(self, paths: Sequence[Path]) -> bytes:
        """What ``llvm-cov`` makes of these files; one that was cut off is left out."""
        chosen, data = self.left / "chosen.txt", self.left / "chosen.profdata"
        chosen.write_text("\n".join(map(str, paths)))
        merge = ["merge", "--sparse", "--failure-mode=all", "--input-files", str(chosen), "-o", str(data)]
        if _run([self._tools[0], *merge]).returncode:
            return b""  # all of them were cut off
        words = [
            "export",
            "--skip-expansions",
            "--skip-branches",
            f"--instr-profile={data}",
            str(self._program),
        ]
        done = _run([self._tools[1], *words])
        if done.returncode:
            raise UsageError(f"{self.client.name}: llvm-cov fails: {done.stderr.decode().strip()}")
        return done.stdout


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, timeout=EXPORT_S, check=False)


def tools(client: str) -> list[str]:
    """``llvm-profdata`` and ``llvm-cov`` of the compiler's LLVM: others do not read what it writes.

    Raises:
        UsageError: There is no compiler, or there are no such programs.
    """
    what = f"{client}: --coverage of a client in Rust"
    said = output_of(["rustc", "--version", "--verbose"], f"{what} takes the program rustc")
    found = dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)
    major = found.get("LLVM version", "").partition(".")[0]
    root = Path(output_of(["rustc", "--print", "sysroot"], what).strip())
    own = root / "lib" / "rustlib" / found.get("host", "") / "bin"
    chosen = [
        shutil.which(name, path=str(own)) or shutil.which(f"{name}-{major}") or _on_path(name, major)
        for name in TOOLS
    ]
    if not all(chosen):
        raise UsageError(
            f"{what} takes {' and '.join(TOOLS)} of LLVM {major}, as the compiler has it: "
            f"rustup component add llvm-tools, or the package llvm-{major} of Debian or Ubuntu"
        )
    return [each for each in chosen if each]


def _on_path(name: str, major: str) -> str | None:
    program = shutil.which(name)
    if program is not None and f"LLVM version {major}.".encode() in _run([program, "--version"]).stdout:
        return program
    return None


def _built(client: Client) -> Path:
    """The program. What it is built from stays in the cache: what does not count is compiled once."""
    manifest = tomllib.loads((Path(client.folder) / "Cargo.toml").read_text("utf-8"))
    name: str = manifest["package"]["name"]
    place = cache() / "coverage" / name
    place.mkdir(parents=True, exist_ok=True)
    wrapper = place / "rustc"
    crates = [each.replace("-", "_") for each in (*client.protocol_modules, KIT, name)]
    patterns = "|".join(f'*" --crate-name {each} "*' for each in crates)
    text = _WRAPPER.format(patterns=patterns)
    if not wrapper.is_file() or wrapper.read_text() != text:  # a new one has cargo ask and build again
        wrapper.write_text(text)
        wrapper.chmod(0o755)
    words = ["build", "--quiet", "--locked", "--features", f"{KIT}/coverage", "--target-dir", str(place)]
    output_of(
        ["cargo", *words],
        f"{client.name} cannot be built with -C instrument-coverage",
        folder=Path(client.folder),
        env={"RUSTC_WRAPPER": str(wrapper)},
    )
    return place / "debug" / name


class LlvmFunction(msgspec.Struct):
    """A function, or an instance of one.

    Attributes:
        regions: Each has first line and column, last line and column, how often it was executed, the
            number of its file, that of an expanded one, and its kind.
    """

    filenames: list[str]
    regions: list[tuple[int, int, int, int, int, int, int, int]]


class LlvmData(msgspec.Struct):
    """What is known of a program."""

    functions: list[LlvmFunction]


class LlvmExport(msgspec.Struct):
    """What ``llvm-cov export`` writes."""

    data: list[LlvmData]


Blocks = dict[PlacedBlock, bool]


def blocks_of(export: bytes, crates: Iterable[str]) -> list[Blocks]:
    """The blocks of each function, each with whether it was executed in any instance.

    Args:
        crates: Parts of the paths of those that count.
    """
    if not export:
        return []
    found: dict[PlacedBlock, Blocks] = {}
    for function in msgspec.json.decode(export, type=LlvmExport).data[0].functions:
        path = function.filenames[0]
        if not any(crate in path for crate in crates):
            continue
        own = [
            (PlacedBlock(path, *region[:4]), region[4] > 0)
            for region in function.regions
            if region[5] == 0 and region[7] == _CODE
        ]
        if own:
            blocks = found.setdefault(min(block for block, _ in own), {})
            for block, is_executed in own:
                blocks[block] = blocks.get(block, False) or is_executed
    return list(found.values())


def files_of(functions: Iterable[Blocks]) -> list[FileCoverage]:
    """The files; their sources are read for the names of functions and for lines with code."""
    by_path: dict[str, list[Blocks]] = {}
    for each in _joined(functions):
        by_path.setdefault(min(each).path, []).append(each)
    return [_file(path, found) for path, found in sorted(by_path.items())]


def _joined(functions: Iterable[Blocks]) -> list[Blocks]:
    """An async function is two to LLVM, its head and its body, which begins where the head ends."""
    by_begin = {
        (first.path, first.first, first.first_column): each for each in functions for first in [min(each)]
    }
    for head in list(by_begin.values()):
        block = max(head)
        body = by_begin.get((block.path, block.last, block.last_column))
        if len(head) == 1 and body is not None:
            del by_begin[block.path, block.last, block.last_column]
            head.update(body)
    return list(by_begin.values())


def _file(path: str, functions: Sequence[Blocks]) -> FileCoverage:
    texts = Path(path).read_text("utf-8", errors="replace").splitlines()
    lines = _lines(texts, {block: is_executed for each in functions for block, is_executed in each.items()})
    shown = [
        BlockFunction(
            _name(texts, min(each).first),
            min(each).first,
            max(block.last for block in each),
            [block.block(is_executed) for block, is_executed in sorted(each.items())],
        )
        for each in functions
    ]
    return file_of(_shown(path), shown, lines)


def _shown(path: str) -> str:
    """From the folder of the crate on."""
    return re.sub(r".*/registry/src/[^/]+/", "", path)


def _lines(texts: Sequence[str], blocks: Mapping[PlacedBlock, bool]) -> dict[int, bool]:
    """Each line with code, by the innermost block at its beginning."""
    found: dict[int, bool] = {}
    inner_last = sorted(
        blocks, key=lambda each: (each.first, each.first_column, -each.last, -each.last_column)
    )
    for each in inner_last:
        for line in range(each.first, each.last + 1):
            text = texts[line - 1]
            begins = line, len(text) - len(text.lstrip()) + 1
            is_in = (each.first, each.first_column) <= begins < (each.last, each.last_column)
            if has_code(text) and (is_in or (line == each.first and line not in found)):
                found[line] = blocks[each]
    return found


def _name(texts: Sequence[str], line: int) -> str:
    """``Type::function``: the type is that of the block around it, which begins further left."""
    function = _FUNCTION.search(texts[line - 1])
    if function is None:
        return "(closure)"
    around = (
        text
        for text in reversed(texts[: line - 1])
        if text.strip() and _indent(text) < _indent(texts[line - 1])
    )
    owner = next(filter(None, map(_OWNER.match, around)), None)
    name = owner and (owner[1] or owner[2])
    return f"{name}::{function[1]}" if name else function[1]


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())
