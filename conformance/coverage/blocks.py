"""Files of a library in a language whose coverage knows blocks of code and no branches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from conformance.coverage.document import Branch, FileCoverage, FunctionCoverage

#: What has no line of code: nothing, or only what closes a block, or a comment of its own.
_NO_CODE = ("", "//", "/*", "*", "{", "}", "};", "})", "});", ")", ");", "]", "];", "},", "],")


class Block(NamedTuple):
    """A stretch of code that is executed as a whole, but for the blocks in it.

    Attributes:
        start, end: In whatever unit the language counts them.
        first, last: Lines, from 1.
    """

    start: int
    end: int
    first: int
    last: int
    is_executed: bool


class PlacedBlock(NamedTuple):
    """Where a block lies: lines and columns, from 1."""

    path: str
    first: int
    first_column: int
    last: int
    last_column: int

    @property
    def branch(self) -> Branch:
        """The same in two numbers."""
        return self.path, self.first * 10_000 + self.first_column, self.last * 10_000 + self.last_column

    def block(self, is_executed: bool) -> Block:
        """What there is to know of it."""
        _, start, end = self.branch
        return Block(start, end, self.first, self.last, is_executed)


class BlockFunction(NamedTuple):
    """A function; "" is the file itself."""

    name: str
    first: int
    last: int
    blocks: Sequence[Block]


def file_of(path: str, functions: Iterable[BlockFunction], lines: Mapping[int, bool]) -> FileCoverage:
    """A file.

    Args:
        lines: Those with code, each with whether it was executed.
    """
    ordered = sorted(functions, key=lambda each: (each.first, -each.last))
    missing: dict[int, list[int]] = {}
    for line, is_executed in lines.items():
        if not is_executed:
            missing.setdefault(_innermost(ordered, line), []).append(line)
    shown = tuple(_function(each, missing.get(number, ())) for number, each in enumerate(ordered))
    return FileCoverage(
        path=path,
        lines=len(lines),
        executed_lines=sum(lines.values()),
        branches=sum(each.branches for each in shown),
        executed=sum(each.executed for each in shown),
        functions=shown,
    )


def _innermost(ordered: Sequence[BlockFunction], line: int) -> int:
    """The number of the last function that begins before the line and does not end before it; -1: none."""
    at = bisect_right(ordered, line, key=lambda each: each.first) - 1
    while at >= 0 and ordered[at].last < line:
        at -= 1
    return at


def _function(each: BlockFunction, missing_lines: Sequence[int]) -> FunctionCoverage:
    never = [(block.first, block.last) for block in each.blocks if not block.is_executed]
    return FunctionCoverage(
        name=each.name,
        line=each.first,
        branches=len(each.blocks),
        executed=len(each.blocks) - len(never),
        missing=tuple(sorted(never)),
        missing_lines=tuple(sorted(missing_lines)),
        is_entered=len(never) < len(each.blocks),
    )


def has_code(line: str) -> bool:
    """Whether a line has more than a comment or the end of a block."""
    text = line.strip()
    return text not in _NO_CODE and not text.startswith(("//", "/*", "* ", "*/"))
