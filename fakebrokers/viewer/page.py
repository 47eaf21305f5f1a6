"""The page: style, program and documents in one file.

Documents travel as compressed JSON in base64, so no text of a run can become markup, and 100,000 rows fit
into a few megabytes. What the broker knew comes apart from the rows: the page unpacks it when they are drawn.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path

import msgspec

from fakebrokers.journal.texts import as_json
from fakebrokers.viewer.rows import Fact, RunDocument

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
<body>
<noscript>This page needs JavaScript.</noscript>
{documents}
<script>{program}</script>
"""


def page_of(documents: Sequence[RunDocument], difference: tuple[int, int] | None = None) -> str:
    """The page of one run, or of two side by side.

    Args:
        difference: Of two runs, the rows where they first differ; -1 for one that has ended there.
    """
    here = resources.files(__package__)
    packed = [_packed(msgspec.structs.replace(document, facts=[])) for document in documents]
    facts = [_packed(document.facts) for document in documents]
    marks = "" if difference is None else f' data-difference="{difference[0]} {difference[1]}"'
    return _PAGE.format(
        title=escape(" and ".join(document.title for document in documents)),
        style=(here / "viewer.css").read_text("utf-8"),
        program=(here / "viewer.js").read_text("utf-8"),
        documents="\n".join(
            f'<script type="text/plain" class="data"{marks}>{content}</script>\n'
            f'<script type="text/plain" class="facts">{known}</script>'
            for content, known in zip(packed, facts, strict=True)
        ),
    )


def write_page(
    path: Path, documents: Sequence[RunDocument], difference: tuple[int, int] | None = None
) -> None:
    """Write the page; its folder is made. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page_of(documents, difference), "utf-8")


def first_difference(one: RunDocument, other: RunDocument) -> tuple[int, int] | None:
    """The rows where two runs first differ in what happened on a lane, in order; times do not count.

    Returns:
        Numbers of rows, -1 where one has ended before; None where both are alike.
    """
    mine, theirs = _signatures(one), _signatures(other)
    for (number, sign), (their_number, their_sign) in zip(mine, theirs, strict=False):
        if sign != their_sign:
            return number, their_number
    if len(mine) == len(theirs):
        return None
    shorter = min(len(mine), len(theirs))
    return (mine[shorter][0], -1) if len(mine) > shorter else (-1, theirs[shorter][0])


def _signatures(document: RunDocument) -> list[tuple[int, tuple[str, ...]]]:
    """What each row says happened, but for bytes and rules, and numbers that differ from run to run."""
    return [
        (number, (row.what, document.lanes[row.lane].name, row.tap, row.name, row.fault))
        for number, row in enumerate(document.rows)
        if row.what not in ("bytes", "rule")
    ]


def _packed(content: RunDocument | Sequence[Fact]) -> str:
    return base64.b64encode(zlib.compress(as_json(content), 6)).decode()
