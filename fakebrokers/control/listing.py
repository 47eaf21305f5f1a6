"""Rows printed as the tools of real brokers print them: a table with tabs, CSV, or JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fakebrokers.errors import UsageError


class Listing:
    """How to print.

    Args:
        formatter: ``table``, ``pretty_table`` (the same), ``csv`` or ``json``.
        headers: Whether tables begin with the names of the columns.

    Raises:
        UsageError: There is no such formatter.
    """

    def __init__(self, formatter: str, headers: bool) -> None:
        if formatter not in ("table", "pretty_table", "csv", "json"):
            raise UsageError(f"--formatter: expected table, csv or json, got {formatter!r}")
        self._formatter = formatter
        self._headers = headers

    def text(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
        """The columns of all rows, with a line break at the end.

        Raises:
            UsageError: A row has no such column.
        """
        for row in rows[:1]:
            unknown = [name for name in columns if name not in row]
            if unknown:
                raise UsageError(f"no column {unknown[0]!r}; there are: {', '.join(row)}")
        found = [[row[name] for name in columns] for row in rows]
        if self._formatter == "json":
            named = [dict(zip(columns, values, strict=True)) for values in found]
            return msgspec.json.encode(named).decode() + "\n"
        lines = [[_word(value) for value in values] for values in found]
        if self._headers and lines:
            lines.insert(0, list(columns))
        if self._formatter == "csv":
            file = io.StringIO()
            csv.writer(file, lineterminator="\n").writerows(lines)
            return file.getvalue()
        return "".join("\t".join(line) + "\n" for line in lines)


def _word(value: Any) -> str:
    """A value in a cell; lists and objects in brackets, as Erlang's tools show them."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_word, value))}]"
    if isinstance(value, dict):
        pairs = [f'{{"{name}", {_quoted(each)}}}' for name, each in value.items()]
        return f"[{', '.join(pairs)}]"
    text = str(value)
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _quoted(value: Any) -> str:
    return f'"{_word(value)}"' if isinstance(value, str) else _word(value)
