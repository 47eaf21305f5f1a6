"""A protocol of another project: its subject and one line are all that scenarios for all protocols need."""

from __future__ import annotations

import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.results import Verdict
from conformance.suite import subjects
from conformance.suite.brokers import fake_for
from conformance.suite.judge import Judgement, judge, unfit
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario, registered
from fakebrokers import description as protocols
from fakebrokers.core import virtual
from fakebrokers.errors import UsageError
from tests.scenarios.toy import client as toy_client
from tests.scenarios.toy.subject import ToySubject

HOLDS = ToySubject.judged_by


@pytest.fixture(autouse=True)
def toy_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    all_scenarios()
    monkeypatch.setattr(protocols, "_REGISTERED", dict(protocols._REGISTERED))
    protocols.register("toy", "tests.toy")


def toy_rows() -> list[Scenario]:
    return [item for item in registered() if item.protocol == "toy"]


def run(item: Scenario, client: type[toy_client.Toy]) -> Judgement:
    async def work() -> Judgement:
        adapter = InProcessAdapter(client, "toy")
        hello = await adapter.start()
        try:
            return unfit(item, hello) or await judge(item, adapter, fake_for(memory=True))
        finally:
            await adapter.kill()

    return virtual.run(work())


@pytest.mark.parametrize("name", HOLDS)
def test_its_clients_are_judged(name: str) -> None:
    [item, *_] = [item for item in toy_rows() if item.id == name]
    found = run(item, toy_client.Toy)
    assert found.verdict is Verdict.PASS, found.reason


@pytest.mark.parametrize(
    ("name", "client", "criterion"),
    [
        ("NET-1.01", toy_client.WithoutHalves, "connect works"),
        ("NET-3.03", toy_client.Impatient, "put ends at its deadline"),
    ],
)
def test_a_bad_client_fails(name: str, client: type[toy_client.Toy], criterion: str) -> None:
    [item, *_] = [item for item in toy_rows() if item.id == name]
    found = run(item, client)
    assert (found.verdict, found.criterion) == (Verdict.FAIL, criterion)


def test_its_rows_are_what_the_script_asks_for_as_the_subject_changes_it() -> None:
    rows = {item.key: item for item in toy_rows()}
    both = [(name, "toy", variant) for name in HOLDS for variant in ("plain", "seeded")]
    assert [*rows] == [key for key in both if key != ("NET-1.03", "toy", "seeded")]
    first = rows["NET-1.01", "toy", "plain"]
    assert first.subject is ToySubject
    assert first.roles == ("caller", "service")
    assert first.timeout_s == 20.0
    assert rows["NET-3.03", "toy", "plain"].timeout_s > 20.0
    assert rows["NET-1.03", "toy", "plain"].ops == ("toy.read",)


@pytest.mark.parametrize(("variant", "seed"), [("plain", 1), ("seeded", 7)])
def test_the_variant_reaches_the_fake(variant: str, seed: int) -> None:
    [item] = [one for one in toy_rows() if one.key == ("NET-1.01", "toy", variant)]
    fake = fake_for(seed=1, memory=True)(item)
    assert fake.faults.plan.seed == seed
    assert item.server == {"body_limit": 4096} | ({"seed": 7} if variant == "seeded" else {})


def test_a_protocol_without_a_subject_is_named() -> None:
    assert subjects.elsewhere()["toy"] == HOLDS
    with pytest.raises(UsageError, match="there is no protocol 'pigeon'"):
        subjects.find("pigeon")
    protocols.register("mute", "tests.scenarios.mute")
    with pytest.raises(UsageError, match=r"there is no subject for mute yet: .*tests\.nowhere\.subject"):
        subjects.find("mute")
    assert "mute" not in subjects.elsewhere()
