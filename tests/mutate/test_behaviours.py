"""The wrong behaviours, as data: which there are, and that the fakes can have them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fakebrokers.faults.injector import Injector
from fakebrokers.mutate.behaviours import GENERAL
from fakebrokers.mutate.possible import behaviours_of
from fakebrokers.protocol import Protocol, protocols

PAGE = Path(__file__).parents[2] / "docs/how-to/would-your-tests-notice.md"
SHIPPED = [each for each in protocols() if each.server.startswith("fakebrokers.")]
PROTOCOLS = pytest.mark.parametrize("protocol", protocols(), ids=lambda each: each.fixture)


@pytest.mark.parametrize("protocol", SHIPPED, ids=lambda each: each.fixture)
def test_each_protocol_has_about_25_of_them(protocol: Protocol) -> None:
    there = behaviours_of(protocol)
    assert 20 <= len(there) <= 30
    assert len({each.name for each in there}) == len(there)


@PROTOCOLS
def test_what_a_protocol_has_of_its_own_is_possible(protocol: Protocol) -> None:
    own = protocol.load_behaviours()
    injector = Injector(protocol.wires, own=protocol.own_effects, protocol=protocol.name)
    for each in own:
        injector.check(each.fault, each.name)
    assert {each.about for each in own} <= {each.about for each in behaviours_of(protocol)}


@PROTOCOLS
def test_the_fault_is_called_like_the_behaviour_and_takes_place_once(protocol: Protocol) -> None:
    for each in behaviours_of(protocol):
        assert each.fault.name == each.name
        assert each.fault.scope == "run"
        assert (each.fault.match.nth, each.fault.match.first) == ((None, 2) if each.swaps else (1, None))


def test_the_page_has_them_all() -> None:
    page = PAGE.read_text()
    rows = [f"| `{each.name}` | {each.about} |" for each in GENERAL]
    for protocol in protocols():
        rows += [
            f"| `{protocol.name}` | `{each.name}` | {each.about} |" for each in protocol.load_behaviours()
        ]
    assert [row for row in page.splitlines() if re.match(r"\| `[a-z-]+` \| (`|[A-Z])", row)] == rows


def test_every_general_one_is_possible_somewhere() -> None:
    there = {each.name for protocol in protocols() for each in behaviours_of(protocol)}
    assert {each.name for each in GENERAL} <= there
