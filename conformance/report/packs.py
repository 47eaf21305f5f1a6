"""The pages of the scenarios, packed: nobody reads more than a few of them, and they are most of the file."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from conformance.printing import plain
from conformance.report.model import Page, ProtocolSection, ScenarioRow

#: Pages that are packed together: the more, the smaller the file; the fewer, the sooner one of them is shown.
TOGETHER = 12


class Pack(msgspec.Struct, frozen=True):
    """Some pages in a row.

    Attributes:
        anchors: Of each page.
        content: A JSON list of their HTML, deflated, in base 64.
    """

    anchors: tuple[str, ...]
    content: str


def packs(page: Page, render: Callable[[ProtocolSection, ScenarioRow], str]) -> Iterator[Pack]:
    """All pages; `render` makes the HTML of one."""
    for section in page.sections:
        for rows in _groups(section.rows):
            content = packed([render(section, row) for row in rows])
            yield Pack(tuple(row.anchor for row in rows), content)


def packed(document: Any) -> str:
    """A document as the script of the page unpacks it: JSON, deflated, in base 64."""
    text = json.dumps(_plain(document), ensure_ascii=False, separators=(",", ":"))
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def _plain(document: Any) -> Any:
    """The same with harmless texts."""
    if isinstance(document, str):
        return plain(document, lines=True)
    if isinstance(document, dict):
        return {_plain(name): _plain(value) for name, value in document.items()}
    return list(map(_plain, document)) if isinstance(document, list | tuple) else document


def _groups(rows: Sequence[ScenarioRow]) -> Iterable[Sequence[ScenarioRow]]:
    return (rows[first : first + TOGETHER] for first in range(0, len(rows), TOGETHER))
