"""Columns as numpy arrays, and what a group-by needs of them.

Texts become codes (`Codes`); signed numbers have `NONE` where there is nothing; unsigned ones come with a
mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    Ints = npt.NDArray[np.int64]
    Unsigned = npt.NDArray[np.uint64]
    Mask = npt.NDArray[np.bool_]

#: "Nothing" among signed numbers.
NONE = np.int64(-(2**63))
_GREATEST = np.iinfo(np.int64).max
#: Rows whose intermediate results stay in a processor's cache.
_AT_ONCE = 1 << 15


class Codes:
    """A column of text: a code for each row, -1 where there is nothing.

    Args:
        empty: Nothing means the empty text.

    Attributes:
        names: The text of each code.
    """

    def __init__(self, column: Any, *, empty: bool = False) -> None:
        column = _in_one_piece(column)
        self.names = column.dictionary
        codes = column.indices
        self.codes: Ints = np.asarray(codes.fill_null(-1) if codes.null_count else codes).astype(
            np.int64, copy=False
        )
        if empty and codes.null_count:
            self._take_nothing_for_empty()

    def _take_nothing_for_empty(self) -> None:
        code = pc.index(self.names, "").as_py()
        if code < 0:
            code = len(self.names)
            self.names = pa.concat_arrays([self.names, pa.array([""], self.names.type)])
        self.codes = np.where(self.codes < 0, code, self.codes)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, code: int) -> str:
        return str(self.names[int(code)])

    def text(self, row: int) -> str | None:
        """What a row has."""
        code = self.codes[row]
        return None if code < 0 else self[code]

    def are(self, *texts: str) -> Mask:
        """For each row, whether it is one of these."""
        hit = np.zeros(len(self.names) + 1, bool)  # the last one is that of -1
        hit[:-1] = np.asarray(pc.is_in(self.names, pa.array(texts, self.names.type)))
        return hit[self.codes]


def _in_one_piece(column: Any) -> Any:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if isinstance(column, pa.ChunkedArray):
        if not column.num_chunks:
            return pa.array([], pa.string()).dictionary_encode()
        column = column.unify_dictionaries().combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def parts_of(column: Any, parts: int) -> Ints:
    """For each text of a column one of so many parts: the same for that text in any row; 0 for nothing.

    Told apart by the length and the first and last eight bytes, where names of messages differ.
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    pieces = [
        _parts_of(chunk.slice(begin, _AT_ONCE), parts)
        for chunk in chunks
        for begin in range(0, len(chunk), _AT_ONCE)
    ]
    return np.concatenate(pieces or [np.zeros(0, np.int64)])


def _parts_of(texts: Any, parts: int) -> Ints:
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    lengths, start = np.diff(ends), int(ends[0])
    inside = content.slice(start, int(ends[-1]) - start).to_pybytes() if content is not None else b""
    padded = b"\0" * 8 + inside + b"\0" * 8
    #: The eight bytes from each place on as a number.
    words: Unsigned = np.ndarray(len(padded) - 7, "<u8", padded, strides=(1,))
    ends -= start
    beyond = (8 * np.clip(8 - lengths, 0, 7)).astype(np.uint64)
    head = (words[ends[:-1] + 8] << beyond) >> beyond
    tail = words[ends[1:]] >> beyond
    mixed = (head * np.uint64(0x9E3779B97F4A7C15)) ^ (tail * np.uint64(0xC2B2AE3D27D4EB4F))
    mixed += lengths.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    found: Ints = ((mixed >> np.uint64(33)) % np.uint64(parts)).astype(np.int64)
    return np.where(lengths > 0, found, 0)


def numbers(column: Any) -> Ints:
    """A column of signed numbers."""
    if not len(column):
        return np.zeros(0, np.int64)
    whole = column.combine_chunks()
    return np.asarray(whole.fill_null(int(NONE)) if whole.null_count else whole)


def unsigned(column: Any) -> tuple[Unsigned, Mask]:
    """A column of unsigned numbers, and where there is one."""
    if not len(column):
        return np.zeros(0, np.uint64), np.zeros(0, bool)
    whole = column.combine_chunks()
    if not whole.null_count:
        return np.asarray(whole), np.ones(len(whole), bool)
    return np.asarray(whole.fill_null(0)), np.asarray(whole.is_valid())


def group(*columns: Ints) -> tuple[Ints, int]:
    """A dense code for each combination of columns without negative numbers, and how many there are."""
    code, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        many = int(column.max()) + 1 if len(column) else 1
        if many == 1:
            continue
        if size * many >= 1 << 62:
            code, size = dense(code)
        if size * many >= 1 << 62:
            column, many = dense(column)
        code = code * many + column
        size *= many
    return dense(code)


def dense(values: Any) -> tuple[Ints, int]:
    """The same for one column of any numbers, in the order of the numbers or of their rows."""
    if not len(values):
        return np.zeros(0, np.int64), 0
    low, high = int(values.min()), int(values.max())
    if high - low < 4 * len(values) + 1024:  # few enough for a table instead of hashing
        places = (values - values.dtype.type(low)).astype(np.int64)
        seen = np.zeros(high - low + 1, bool)
        seen[places] = True
        codes = np.cumsum(seen) - 1
        return codes[places], int(codes[-1]) + 1
    encoded = pc.dictionary_encode(pa.array(values))
    return np.asarray(encoded.indices).astype(np.int64), len(encoded.dictionary)


def first(groups: int, codes: Ints, values: Ints) -> Ints:
    """For each group the value of its first row; `NONE` where it has no row."""
    out = np.full(groups, NONE)
    out[codes[::-1]] = values[::-1]
    return out


def last(groups: int, codes: Ints, values: Ints) -> Ints:
    """The same of its last row."""
    out = np.full(groups, NONE)
    out[codes] = values
    return out


def least(groups: int, codes: Ints, values: Ints) -> Ints:
    """For each group the smallest value; `NONE` where it has no row."""
    out = np.full(groups, _GREATEST)
    np.minimum.at(out, codes, values)
    return np.where(out == _GREATEST, NONE, out)


def most(groups: int, codes: Ints, values: Ints) -> Ints:
    """The same of the largest one."""
    out = np.full(groups, NONE)
    np.maximum.at(out, codes, values)
    return out


def bounds(groups: int, codes: Ints, values: Unsigned) -> tuple[Unsigned, Unsigned, Mask]:
    """For each group the smallest and the largest of unsigned values, and whether it has any."""
    low, high = np.full(groups, np.iinfo(np.uint64).max, np.uint64), np.zeros(groups, np.uint64)
    np.minimum.at(low, codes, values)
    np.maximum.at(high, codes, values)
    there = np.zeros(groups, bool)
    there[codes] = True
    return low, high, there


def starts(*columns: Any) -> Mask:
    """For each row of sorted columns, whether it differs from the one before."""
    new = np.ones(len(columns[0]), bool)
    if len(new):
        new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return new


def ranges(counts: Ints) -> tuple[Ints, Ints]:
    """For ``counts`` = 2, 3: the owner (0 0 1 1 1) and the place (0 1 0 1 2) of each element."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)


def names_of(parts: Sequence[Codes]) -> tuple[list[str], list[Ints]]:
    """One numbering for the texts of several columns: all texts, and each column's codes in it."""
    index: dict[str, int] = {}
    to = [
        np.array([index.setdefault(name, len(index)) for name in part.names.to_pylist()] or [0], np.int64)
        for part in parts
    ]
    return list(index), [
        table[part.codes] if len(part.codes) else part.codes for part, table in zip(parts, to, strict=True)
    ]
