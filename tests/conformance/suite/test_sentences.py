"""What a script tries stands above it, in the words of the catalogue."""

from __future__ import annotations

import ast

from conformance.suite.catalogue import Requirement, requirement
from conformance.suite.sentences import WIDTH, docstrings, rewritten, sentences

ITEM = Requirement(
    id="RMQS-1.01",
    title="Does it work?",
    level="MUST",
    severity="low",
    fault='One frame says {"a": "\\\\"} ' + "and another one follows it " * 6,
    passes="It works",
)
SOURCE = '''"""A module."""

from nowhere import scenario


@scenario("RMQS-1.01")
async def it_works(
    broker: object,
) -> None:
    # a reason
    await broker


async def other() -> None:
    """Stays."""
'''


def test_a_docstring_is_written_and_written_again() -> None:
    once = rewritten(SOURCE, {"it_works": sentences(ITEM)})
    assert rewritten(once, {"it_works": sentences(ITEM)}) == once
    tree = ast.parse(once)
    told = {
        node.name: ast.get_docstring(node) for node in tree.body if isinstance(node, ast.AsyncFunctionDef)
    }
    assert told == {"it_works": sentences(ITEM), "other": "Stays."}
    assert max(map(len, once.splitlines())) <= WIDTH
    assert once.replace(once[once.index('    """Does') : once.index("    # a reason")], "") == SOURCE


def test_a_requirement_that_changes_changes_the_docstring() -> None:
    before = rewritten(SOURCE, {"it_works": sentences(ITEM)})
    changed = Requirement(
        id="RMQS-1.01", title="It works", level="MUST", severity="low", fault="None", passes="It does"
    )
    after = rewritten(before, {"it_works": sentences(changed)})
    assert after == rewritten(SOURCE, {"it_works": sentences(changed)})
    assert '    """It works.\n\n    Fault: None\n    Pass: It does\n    """\n    # a reason' in after


def test_a_script_for_one_of_several_protocols_says_what_is_special_there() -> None:
    item = requirement("NET-3.02")
    assert sentences(item) in [*docstrings().values()]
    [own] = [text for text in docstrings().values() if "pzq: 20 " in text]
    assert own.startswith("100 concurrent ops.\n\nFault: Answers in an order drawn from the seed. pzq: 20")
