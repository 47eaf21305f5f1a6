"""Each operator of the table: what it makes of a statement, and what it leaves alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests.conformance.planted.changes import changed, changes_in
from tests.conformance.planted.operators import OPERATORS

#: Operator, the first statement of a block, and the block with each variant; none for what it leaves alone.
VARIANTS: list[tuple[str, str, list[str]]] = [
    ("delete", "note(1)", ["pass"]),
    ("delete", "one = 1", []),
    ("true", "if one:\n    note()", ["if True:\n    note()"]),
    ("true", "while one:\n    note()", []),
    ("false", "while one:\n    note()", ["while False:\n    note()"]),
    ("drop", "one = two and three", ["one = three", "one = two"]),
    ("drop", "one = a or b or c", ["one = b or c", "one = a or c", "one = a or b"]),
    ("body", "note(one if two else three)", ["note(one)"]),
    ("orelse", "note(one if two else three)", ["note(three)"]),
    ("nofinal", "try:\n    note()\nfinally:\n    end()", ["try:\n    note()\nfinally:\n    pass"]),
    ("negate", "if not one:\n    note()", ["if one:\n    note()"]),
    ("negate", "if one < 2 and two:\n    note()", ["if one >= 2 and two:", "if one < 2 and (not two):"]),
    ("negate", "one = [a for a in b if a in c]", ["one = [a for a in b if a not in c]"]),
    ("negate", "return one is None", ["return one is not None"]),
    ("negate", "note(one is None)", []),
    ("andor", "return one and two", ["return one or two"]),
    ("edge", "one = 0 <= two < 3", ["one = 0 < two < 3", "one = 0 <= two <= 3"]),
    ("edge", "if one == 2:\n    note()", []),
    ("plus", "one = two[1] * 0.5", ["one = two[2] * 0.5", "one = two[1] * 1.5"]),
    ("minus", "note(3, True, 'x')", ["note(2, True, 'x')"]),
    ("flip", "note(3, True)", ["note(3, False)"]),
    ("sibling", "one = min(two, any(three))", ["one = max(two, any(three))", "one = min(two, all(three))"]),
    ("letters", "one = len(two.encode())", ["one = len(two)", "one = len(two.encode('latin-1', 'replace'))"]),
    ("argument", "note(one, at=2, up=3)", ["note(one, up=3)", "note(one, at=2)"]),
    ("argument", "note(one.get(2, 3))", ["note(one.get(2))"]),
    ("argument", "unheard_of(one, two)", []),
    ("kept", "one = two.pop(3, None)", ["one = two.get(3, None)"]),
    ("kept", "one = two.pop(3)", ["one = two[3]"]),
    ("kept", "one = two.popleft()", ["one = two[0]"]),
    ("alias", "for one in tuple(two):\n    note()", ["for one in two:\n    note()"]),
    ("alias", "one = two.copy()", ["one = two"]),
    ("swap", "note()\nend()", ["end()\nnote()"]),
    ("swap", "await note()\nawait end()", ["await end()\nawait note()"]),
    ("swap", "one = note()\nend(one)", []),
    ("swap", "self.one = 1\nself.two = 2", []),
    ("swap", "note()\nreturn 1", []),
    ("late", "one = two.three\nnote()\nend(one)", ["pass\nnote()\nend(two.three)"]),
    ("late", "one = two.three\none = end(one)", []),
    ("late", "one = await two()\nend(one)", []),
    ("once", "for one in two:\n    note()", ["for one in two:\n    note()\n    break"]),
    ("unguarded", "async with self.lock:\n    note()", ["note()"]),
    ("unguarded", "with one as two:\n    note()", []),
    ("wider", "with suppress(ValueError):\n    note()", ["with suppress(Exception):\n    note()"]),
    ("wider", "try:\n    note()\nexcept asyncio.CancelledError:\n    end()", ["except BaseException:"]),
    ("wider", "try:\n    note()\nexcept BaseException:\n    end()", []),
    ("narrower", "try:\n    note()\nexcept BaseException:\n    end()", ["except Exception:"]),
    ("narrower", "try:\n    note()\nexcept OSError:\n    end()", ["except ():"]),
    ("narrower", "try:\n    note()\nexcept (A, B):\n    end()", ["except (B,):", "except (A,):"]),
]  # fmt: skip


def variants(operator: str, block: str) -> Iterator[str]:
    """The block, each time with another variant of its first statement."""
    for new in OPERATORS[operator](ast.parse(block).body, 0):
        yield ast.unparse(ast.fix_missing_locations(ast.Module(new, [])))


@pytest.mark.parametrize(("operator", "block", "expected"), VARIANTS)
def test_an_operator_yields_its_variants_and_no_more(operator: str, block: str, expected: list[str]) -> None:
    found = list(variants(operator, block))
    assert len(found) == len(expected), found
    for one, other in zip(found, expected, strict=True):
        assert other in one, found


def test_each_operator_of_the_table_is_tried_here() -> None:
    assert {operator for operator, _, expected in VARIANTS if expected} == set(OPERATORS)


@pytest.mark.parametrize(("operator", "block"), [row[:2] for row in VARIANTS if row[2]])
def test_a_change_in_a_file_is_the_variant(operator: str, block: str, tmp_path: Path) -> None:
    path = tmp_path / "client.py"
    path.write_text(f"class Client:\n    async def work(self):\n{indent(block, ' ' * 8)}\n")
    changes = [each for each in changes_in(path, [operator]) if each.line == 3]
    for change, variant in zip(changes, variants(operator, block), strict=True):
        text = changed(path.read_text(), change)
        assert dedent(text.partition("(self):\n")[2]).strip() == variant.strip()
        compile(text, "client", "exec")
        assert change.text != "no difference"
