"""What a PZQ daemon does by itself: deliveries expire, its send socket gets another routing id."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from conformance.search.random.nemesis import Nemesis
from fakebrokers.core.wire import Wire
from fakebrokers.faults import Realism
from fakebrokers.faults.disturbances import Row, begins
from fakebrokers.faults.steps import Step


class Expiry(Nemesis):
    """All deliveries expire, and their messages come again."""

    name = "expiry"
    about = "All deliveries expire, however young: the messages come again."
    needs_broker = True
    realism = Realism.LEGAL

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        return [begins(step.name, {"type": "expire-now"})]


class Identity(Nemesis):
    """The send socket comes back as another."""

    name = "identity"
    about = "The send socket comes back with another routing id; its connections end."
    needs_broker = True

    def draw(self, random: Random, params: Mapping[str, Any], wire: Wire) -> dict[str, Any]:
        return {"identity": random.choice(("", "other"))}

    def rows(self, step: Step, nodes: int = 1) -> list[Row]:
        return [begins(step.name, {"type": "change-identity", "identity": step.args["identity"]})]


NEMESES = (Expiry(), Identity())
