"""The requirements, and the scenarios that try them."""

from __future__ import annotations

import sys

import pytest

from conformance.suite.catalogue import families, sources
from conformance.suite.load import all_scenarios, of_family, requirement, requirements, select
from conformance.suite.scenario import registered, scenario
from fakebrokers.errors import UsageError
from scenarios.subjects import find


def test_every_requirement_can_be_judged_by_a_reader() -> None:
    for item in requirements().values():
        assert item.title and item.fault and item.passes, item.id
        assert item.level in ("MUST", "SHOULD", "MAY"), item.id
        assert sources(item), f"{item.id} rests on no sentence of its protocol"
        assert any(section.id == item.section for section in families()[item.family].sections), item.id


def test_every_scenario_has_a_place_of_its_own() -> None:
    keys = [item.key for item in all_scenarios()]
    assert len(set(keys)) == len(keys)
    assert keys


def test_the_order_is_that_of_the_catalogue() -> None:
    ids = [item.id for item in select(all_scenarios(), protocol="rabbitmq-stream", which="full")]
    ours = [name for name in ids if name.startswith("RMQS-3.")]
    assert ours == sorted(ours, key=lambda name: int(name.partition(".")[2]))


def test_an_unknown_id_is_refused() -> None:
    with pytest.raises(UsageError, match=r"RMQS-9\.99"):
        requirement("RMQS-9.99")
    with pytest.raises(UsageError, match=r"RMQS-3\.9X"):
        select(all_scenarios(), ids=["rmqs-3.9x"])


def test_sections_and_families_can_be_named() -> None:
    section = select(all_scenarios(), ids=["RMQS-3"])
    assert section and all(item.id.startswith("RMQS-3.") for item in section)
    assert len(select(all_scenarios(), ids=["RMQS"])) > len(section)


def test_the_sets() -> None:
    gate = select(all_scenarios(), which="gate")
    assert gate and all(item.level == "MUST" and not item.soak for item in gate)
    assert 0 < len(select(gate, which="smoke")) < len(gate) / 4
    assert all(item.soak for item in select(all_scenarios(), which="soak"))


def test_two_scripts_for_one_row_are_an_error() -> None:
    async def another(broker: object, client: object, expect: object) -> None:
        """Not the one of the suite."""

    all_scenarios()
    with pytest.raises(UsageError, match="two scripts"):
        scenario("RMQS-1.01")(another)


def test_a_family_of_one_protocol_says_so_itself() -> None:
    with pytest.raises(UsageError, match=r"RMQS-1\.01 is for rabbitmq-stream only"):
        scenario("RMQS-1.01", protocol="rabbitmq-stream")
    with pytest.raises(UsageError, match="say with server= how long"):
        scenario("RMQS-1.01", liveness_s=2)


def test_each_requirement_for_several_protocols_holds_or_has_a_reason() -> None:
    for family in families().values():
        ids = {item.id for item in of_family(family.family)}
        for protocol, covered in family.protocols.items():
            assert not {*covered.holds} & {*covered.without}, protocol
            assert {*covered.holds, *covered.without} <= ids, protocol
            if covered.holds:
                assert {*covered.holds, *covered.without} == ids, protocol
            assert {*covered.remarks} <= ids - {*covered.without}, protocol
            assert all({**covered.without, **covered.remarks}.values()), protocol


def test_what_holds_has_one_row_for_each_variant_of_its_protocol() -> None:
    rows = [item.key for item in all_scenarios()]
    for family in families().values():
        for protocol, covered in family.protocols.items():
            subject = find(protocol)
            for name in covered.holds:
                said = [subject.rows.get(place, {}) for place in (name, name.partition(".")[0], "")]
                wanted = next((row["variants"] for row in said if "variants" in row), subject.variants)
                assert [key[2] for key in rows if key[:2] == (name, protocol)] == sorted(wanted), name


def test_a_script_of_its_own_comes_before_the_one_for_all() -> None:
    scripts = {item.protocol: item.script for item in all_scenarios() if item.id == "NET-3.02"}
    assert scripts["pzq"].__module__ == "scenarios.pzq.net_requests"
    assert scripts["rabbitmq-stream"].__module__ == "scenarios.net.requests"


def test_a_script_for_a_protocol_for_which_nothing_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(subject: object, client: object, expect: object) -> None:
        """PZQ has no heartbeats."""

    all_scenarios()
    module = sys.modules["conformance.suite.scenario"]
    monkeypatch.setattr(module, "_declared", dict(module._declared))
    scenario("NET-1.09", protocol="pzq")(script)
    with pytest.raises(UsageError, match=r"a script of NET-1\.09 for pzq, for which the catalogue does not"):
        registered()


def test_a_row_has_the_settings_of_its_subject_and_of_its_script() -> None:
    rows = {(item.id, item.protocol): item for item in all_scenarios()}
    assert rows["NET-1.08", "rabbitmq-stream"].server == {"heartbeat_s": 15}
    assert rows["NET-1.14", "narconi"].server == {"body_limit": 1 << 20, "tls": True}
    assert rows["NET-1.07", "narconi"].needs == ("keepalive",)
    assert rows["NET-1.05", "narconi"].roles == ("publisher", "consumer", "http")
    assert rows["NET-2.01", "pzq"].sockets is False and rows["NET-1.01", "pzq"].sockets is None
