"""Scenarios from outside whose criteria have no ids yet: they go on working, and say what is missing."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import ParamSpec, TypeVar

from conformance.suite import outside
from conformance.suite.expect import Expect, slug
from conformance.suite.scenario import Scenario

P = ParamSpec("P")
T = TypeVar("T")


class Unnamed(Expect):
    """An `Expect` that makes the id of a criterion of its words where none is given, with a warning."""

    def __getattribute__(self, name: str) -> object:
        found = super().__getattribute__(name)
        if name.startswith("_") or not callable(found):
            return found
        known = signature(found)
        id = known.parameters.get("id")
        return _derived(found, known) if id is not None and id.default is Parameter.empty else found


def expect_for(scenario: Scenario) -> type[Expect]:
    """What judges in a scenario's script."""
    places = (each.__module__ for each in (scenario.script, scenario.subject) if each is not None)
    return Expect if all(map(outside.is_bundled, places)) else Unnamed


def _derived(act: Callable[P, T], known: Signature) -> Callable[P, T]:
    @wraps(act)
    def method(*args: P.args, **named: P.kwargs) -> T:
        if "id" not in named:
            given = known.bind_partial(*args, **named).arguments
            words = str(given.get("criterion", given.get("what", "")))
            named["id"] = slug("{}", words)
            # no DeprecationWarning: Python shows these to nobody who runs `fakebrokers conform`
            warnings.warn(
                f"the criterion {words!r} has no id: write id={named['id']!r}, or mending its words will "
                "change the id that reports and files of known failures know",
                FutureWarning,
                stacklevel=2,
            )
        return act(*args, **named)

    return method
