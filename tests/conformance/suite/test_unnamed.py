"""Scenarios from outside whose criteria have no ids."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.clients.mutants.matrix import run
from conformance.results import Verdict
from conformance.suite import outside
from conformance.suite.declared import declared_by
from conformance.suite.expect import Expect
from conformance.suite.judgement import Judgement
from conformance.suite.load import add_folder, all_scenarios, remove_folder
from conformance.suite.unnamed import expect_for
from tests.conformance.suite.test_outside import FILES, written


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    for folder in outside.folders():
        remove_folder(folder)


def judged(place: Path, body: str) -> Judgement:
    script = FILES["deeper/orders.py"].partition("    expect.that")[0] + textwrap.indent(body, "    ")
    add_folder(written(place / "acme", orders=script))
    [item] = [one for one in all_scenarios() if one.id == "ACME-1.01"]
    return run(item)


def test_a_criterion_without_an_id_goes_on_working_and_says_what_is_missing(tmp_path: Path) -> None:
    body = 'await client.connected()\nexpect.equal(1, 2, "the order is stored")\n'
    with pytest.warns(FutureWarning, match="'the order is stored' has no id: write id='the-order-is-stored'"):
        found = judged(tmp_path, body)
    assert (found.verdict, found.criterion_id) == (Verdict.FAIL, "the-order-is-stored")
    assert declared_by(found.scenario).has("the-order-is-stored")


def test_one_that_has_its_id_is_judged_as_those_that_come_along(tmp_path: Path) -> None:
    found = judged(tmp_path, 'await client.connected()\nexpect.that(0, "it is stored", id=f"{1}-stored")\n')
    assert (found.verdict, found.criterion_id) == (Verdict.FAIL, "1-stored")
    assert declared_by(found.scenario).has("1-stored")


def test_what_comes_along_has_its_ids() -> None:
    assert {expect_for(item) for item in all_scenarios()} == {Expect}
