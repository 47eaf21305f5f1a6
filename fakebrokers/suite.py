"""What tests of your own take from the conformance suite (extra ``suite``).

    from fakebrokers.suite import scenarios

    test_conformance = scenarios("python adapter.py", protocol="rabbitmq-stream")

The suite itself is the packages ``conformance`` and ``scenarios``. They are loaded by place when something is
asked for here: a folder of yours that is called like one of them hides neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fakebrokers.errors import UsageError
from fakebrokers.extras import installing

if TYPE_CHECKING:
    from conformance.clients.adapter.kit import AdapterBase
    from conformance.clients.adapter.result import Result
    from conformance.clients.mutants.registry import mutant
    from conformance.pytest import scenarios
    from conformance.search.random.workload import Workload
    from conformance.suite import Client, Expect, scenario
    from conformance.suite.expect import slug

#: Where in the suite each name is.
_PLACES = {
    "AdapterBase": "conformance.clients.adapter.kit",
    "Client": "conformance.suite",
    "Expect": "conformance.suite",
    "Result": "conformance.clients.adapter.result",
    "Workload": "conformance.search.random.workload",
    "mutant": "conformance.clients.mutants.registry",
    "plan_of": "conformance.search.plans",  # for `load_plan`
    "scenario": "conformance.suite",
    "scenarios": "conformance.pytest",
    "slug": "conformance.suite.expect",
}

__all__ = [
    "AdapterBase",
    "Client",
    "Expect",
    "Result",
    "Workload",
    "mutant",
    "scenario",
    "scenarios",
    "slug",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'fakebrokers.suite' has no attribute {name!r}")
    try:
        from fakebrokers.commands import OWN_PACKAGES, own_package

        for package in OWN_PACKAGES:
            own_package(package)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"fakebrokers.suite.{name} needs the conformance suite, and {error.name!r} is not installed: "
            f"{installing('suite', here=True)}"
        ) from None
    return getattr(import_module(_PLACES[name]), name)
