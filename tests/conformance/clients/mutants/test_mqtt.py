"""What a minute of sweeping the MQTT client would find: a correct client nothing, mutants their defect."""

from __future__ import annotations

import pytest

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.mutants.registry import find_mutant
from conformance.clients.reference.registry import reference, without_sockets
from conformance.rules import judge
from conformance.run.inprocess import run
from conformance.run.material import material_of
from conformance.run.specs import Spec

BASES = sorted(material_of("mqtt").bases)


def found(client: type[AdapterBase], base: str) -> set[str]:
    case = run(without_sockets(client), Spec("mqtt", base))
    assert not case.error and not case.harness
    return {finding.name for finding in judge(case)}


@pytest.mark.parametrize("base", BASES)
def test_the_reference_violates_nothing(base: str) -> None:
    assert found(reference("mqtt"), base) == set()


@pytest.mark.parametrize(
    ("name", "base", "rule"),
    [
        ("copies-without-dup", "lasting", "wire-legal"),
        ("always-dup", "publish", "wire-legal"),
        ("publish-after-pubrec", "lasting", "wire-legal"),
        ("ids-collide", "wraps", "uses-what-it-has"),
        ("acknowledges-twice", "consume", "uses-what-it-has"),
        ("acknowledges-by-pubrec", "consume", "uses-what-it-has"),
        ("acks-without-confirm", "publish", "ack-needs-confirm"),
        ("delivers-at-each-publish", "consume-once", "delivers-what-came"),
        ("first-callback-for-all", "unreliable", "delivers-what-came"),
        ("newest-first", "slow", "delivers-what-came"),
        ("waits-for-a-silent-server", "beats-2-deaf", "uses-what-it-has"),
        ("refused-is-granted", "refused", "ok-needs-answer"),
        ("forgets-subscriptions", "rounds", "comes-back"),
        ("never-retains", "bodies", "writes-what-was-given"),
    ],
)
def test_a_defect_is_found_by_its_rule(name: str, base: str, rule: str) -> None:
    assert rule in found(find_mutant("mqtt", name).adapter, base)
