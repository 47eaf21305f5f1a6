"""Tables of pages in docs that are made from the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping


def table(head: list[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a table."""
    for cells in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cells)} |"


def with_tables(text: str, origin: str, tables: Mapping[str, Iterable[str]]) -> str:
    """A page with its tables as they should be; they are between ``<!-- made of the ORIGIN: NAME -->`` and
    ``<!-- end -->``.

    Raises:
        KeyError: There is no table of such a name.
    """
    part = re.compile(rf"(?<=<!-- made of the {origin}: )(\S+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
    return part.sub(lambda found: f"{found[1]}{found[2]}" + "\n".join([*tables[found[1]], ""]), text)
