"""What a script tries stands above it, in the words of the catalogue."""

from __future__ import annotations

import ast
import inspect

import pytest

from conformance.suite.catalogue import Requirement
from conformance.suite.sentences import WIDTH, rewritten, scripts, sentences

ITEM = Requirement(
    id="X-1.01",
    title="Does it work?",
    level="MUST",
    severity="low",
    fault='One frame says {"a": "\\\\"} ' + "and another one follows it " * 6,
    passes="It works",
)
SOURCE = '''"""A module."""

from nowhere import scenario


@scenario("X-1.01")
async def it_works(
    broker: object,
) -> None:
    # a reason
    await broker


async def other() -> None:
    """Stays."""
'''


@pytest.mark.parametrize("script", scripts(), ids=lambda script: script.__name__)
def test_the_sentences_of_the_catalogue_stand_with_the_script(script) -> None:  # type: ignore[no-untyped-def]
    told = inspect.getdoc(script)
    assert told == sentences(scripts()[script]), "run `python -m conformance.suite.sentences`"


def test_a_docstring_is_written_and_written_again() -> None:
    once = rewritten(SOURCE, {"it_works": ITEM})
    assert rewritten(once, {"it_works": ITEM}) == once
    tree = ast.parse(once)
    told = {
        node.name: ast.get_docstring(node) for node in tree.body if isinstance(node, ast.AsyncFunctionDef)
    }
    assert told == {"it_works": sentences(ITEM), "other": "Stays."}
    assert max(map(len, once.splitlines())) <= WIDTH
    assert once.replace(once[once.index('    """Does') : once.index("    # a reason")], "") == SOURCE


def test_a_requirement_that_changes_changes_the_docstring() -> None:
    before = rewritten(SOURCE, {"it_works": ITEM})
    changed = Requirement(
        id="X-1.01", title="It works", level="MUST", severity="low", fault="None", passes="It does"
    )
    after = rewritten(before, {"it_works": changed})
    assert after == rewritten(SOURCE, {"it_works": changed})
    assert '    """It works.\n\n    Fault: None\n    Pass: It does\n    """\n    # a reason' in after
