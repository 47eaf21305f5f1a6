"""Functions, lines and blocks of a library in JavaScript, from what V8 writes of its coverage.

The kit of our adapters has it written after hello and at each reset, so that each row has a file of its own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from conformance.clients.adapter.process import V8_MEASURED
from conformance.clients.adapters.registry import Client
from conformance.coverage.blocks import Block, BlockFunction, file_of, has_code
from conformance.coverage.document import (
    BLOCKS,
    Branch,
    ClientCoverage,
    FileCoverage,
    document_of,
    shown_path,
)
from conformance.coverage.processes import ProcessMeter
from fakebrokers.errors import UsageError

NOTE = (
    "V8 counts no branches. A block is a function, or a part of one that was executed more or less often "
    "than what is around it: V8 names a function once the code around it has been executed, and a block once "
    "it differs, so their number grows with what is executed. The number of lines does not."
)
SOURCES = (".js", ".mjs", ".cjs")
_NAME = re.compile(r"coverage-(\d+)-\d+-\d+\.json")

Span = tuple[int, int]


class V8Range(msgspec.Struct, rename="camel"):
    """A part of a function, in UTF-16 code units of the file, and how often it was executed."""

    start_offset: int
    end_offset: int
    count: int


class V8Function(msgspec.Struct, rename="camel"):
    """A function; its first range is all of it, the others differ from what is around them."""

    function_name: str
    ranges: list[V8Range]


class V8Script(msgspec.Struct):
    """A file."""

    url: str
    functions: list[V8Function]


class V8Profile(msgspec.Struct):
    """One file of V8's."""

    result: list[V8Script]


FunctionKey = tuple[str, int, int]


class JavaScriptSource(NamedTuple):
    """What is known of a file: its functions with the blocks in them, and by label what was executed.

    Attributes:
        spans: By label: stretches that were executed, ordered, apart from each other.
    """

    functions: dict[FunctionKey, set[Span]]
    spans: dict[str, list[Span]]


class NodeMeter(ProcessMeter):
    """Measures a client in JavaScript.

    Its ``protocol_modules`` are named as in ``import``: a package, or a folder or file of one; what begins
    with ``./`` is a file of the adapter's own.

    Raises:
        UsageError: One is not there.
    """

    def __init__(self, client: Client, folder: Path) -> None:
        self._places = [_place(client, name) for name in client.protocol_modules]
        super().__init__(client, folder)
        self.client = msgspec.structs.replace(
            client, more_env={**client.more_env, V8_MEASURED: str(self.left)}
        )

    def pid_of(self, path: Path) -> int | None:
        found = _NAME.fullmatch(path.name)
        return int(found[1]) if found else None

    def document(self) -> ClientCoverage:
        sources: dict[Path, JavaScriptSource] = {path: JavaScriptSource({}, {}) for path in self._all_files()}
        for label, paths in self.by_label().items():
            for path in paths:
                self._add(label, path, sources)
        self.forget_files()
        files, blocks = [], {}
        for path, source in sorted(sources.items()):
            found, blocks[path] = _file(path, source)
            files.append(found)
        arcs = _arcs(sources, blocks)
        branches = set().union(*arcs.values())
        return document_of(self.client, files, self.counted(arcs), branches, unit=BLOCKS, note=NOTE)

    def _all_files(self) -> Iterator[Path]:
        for place in self._places:
            found = [place] if place.is_file() else place.rglob("*")
            for path in found:
                if path.suffix in SOURCES and "node_modules" not in path.relative_to(place).parts:
                    yield path

    @staticmethod
    def _add(label: str, path: Path, sources: Mapping[Path, JavaScriptSource]) -> None:
        try:
            profile = msgspec.json.decode(path.read_bytes(), type=V8Profile)
        except msgspec.DecodeError:
            return  # the process was killed while it wrote
        for script in profile.result:
            source = sources.get(_path_of(script.url))
            if source is not None:
                add_script(label, script, source)


def _arcs(
    sources: Mapping[Path, JavaScriptSource], blocks: Mapping[Path, Sequence[Block]]
) -> dict[str, set[Branch]]:
    """Blocks that were executed, by label."""
    return {
        label: {
            (shown_path(str(path)), block.start, block.end)
            for path, source in sources.items()
            for block in blocks[path]
            if _covers(source.spans.get(label, ()), block.start)
        }
        for label in {label for source in sources.values() for label in source.spans}
    }


def _place(client: Client, name: str) -> Path:
    own = name.startswith("./")
    place = Path(client.folder) / name if own else Path(client.folder, "node_modules", name)
    if not place.exists():
        why = f"{name}, which its protocol_modules name, is not there: {client.install}"
        raise UsageError(f"{client.name}: {why}")
    return place.resolve()


def _path_of(url: str) -> Path:
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else Path()


def add_script(label: str, script: V8Script, source: JavaScriptSource) -> None:
    """Add what one profile has of a file."""
    for function in script.functions:
        whole = function.ranges[0]
        key = (function.function_name, whole.start_offset, whole.end_offset)
        blocks = source.functions.setdefault(key, set())
        blocks.update((each.start_offset, each.end_offset) for each in function.ranges)
    ranges = [each for function in script.functions for each in function.ranges]
    source.spans[label] = union([*source.spans.get(label, ()), *executed_spans(ranges)])


def executed_spans(ranges: Iterable[V8Range]) -> Iterator[Span]:
    """What was executed: of ranges that lie in each other the innermost counts."""
    at = 0
    around: list[V8Range] = []

    def until(end: int) -> Iterator[Span]:
        nonlocal at
        while around and around[-1].end_offset <= end:
            last = around.pop()
            if last.count and last.end_offset > at:
                yield at, last.end_offset
            at = max(at, last.end_offset)
        if around and around[-1].count and end > at:
            yield at, end
        at = max(at, end)

    for each in sorted(ranges, key=lambda one: (one.start_offset, -one.end_offset)):
        yield from until(each.start_offset)
        around.append(each)
    if around:
        yield from until(around[0].end_offset)


def union(spans: Iterable[Span]) -> list[Span]:
    """The same, ordered and joined."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _covers(spans: Sequence[Span], at: int) -> bool:
    found = bisect_right(spans, at, key=lambda span: span[0]) - 1
    return found >= 0 and at < spans[found][1]


def _overlaps(spans: Sequence[Span], start: int, end: int) -> bool:
    found = bisect_right(spans, end - 1, key=lambda span: span[0]) - 1
    return found >= 0 and spans[found][1] > start


def _file(path: Path, source: JavaScriptSource) -> tuple[FileCoverage, list[Block]]:
    """A file, and all blocks in it."""
    texts = path.read_text("utf-8", errors="replace").splitlines(keepends=True)
    starts, at = [], 0
    for each in texts:
        starts.append(at)
        at += _units(each)
    spans = union(span for found in source.spans.values() for span in found)
    known = source.functions or {("", 0, at): {(0, at)}}  # a file that was never loaded

    def line_of(offset: int) -> int:
        return bisect_right(starts, offset)

    def function(key: FunctionKey) -> BlockFunction:
        name, start, end = key
        is_file = start == 0 and end == at
        blocks = [
            Block(first, last, line_of(first), line_of(last - 1), _covers(spans, first))
            for first, last in sorted(known[key])
        ]
        shown = name or ("" if is_file else "(anonymous)")
        return BlockFunction(shown, line_of(start), line_of(end - 1), blocks)

    functions = [function(key) for key in known]
    lines = {
        number: _overlaps(spans, start + _units(text) - _units(text.lstrip()), start + _units(text.rstrip()))
        for number, (start, text) in enumerate(zip(starts, texts, strict=True), 1)
        if has_code(text)
    }
    found = file_of(shown_path(str(path)), functions, lines)
    return found, [block for each in functions for block in each.blocks]


def _units(text: str) -> int:
    """The length of a text for V8."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
