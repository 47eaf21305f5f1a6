"""Markers that nothing makes use of: whoever has written one is told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.protocol import fixture_name
from fakebrokers.pytest_fixtures import known_fixtures, lived_in
from fakebrokers.pytest_marks import check_names

#: Markers of classes and modules of which some test makes use, by identity.
OF_USE = pytest.StashKey[dict[int, pytest.Mark]]()


def note_use(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Remember the markers of classes and modules that some of these tests make use of."""
    of_use = config.stash.setdefault(OF_USE, {})
    for item in items:
        for node, marker in item.iter_markers_with_node("fakebrokers"):
            if node is not item and id(marker) not in of_use and _is_used(item, node, marker):
                of_use[id(marker)] = marker


def check_use(item: pytest.Item) -> None:
    """Raise `UsageError` if nothing makes use of a marker of this test, or of its class or module.

    To be called when all fixtures of the test are set up.
    """
    for node, marker in item.iter_markers_with_node("fakebrokers"):
        check_names(marker.args)
        if _is_used(item, node, marker) or (node is not item and _others_may_use(item.config, marker)):
            continue
        words = [repr(each) for each in marker.args]
        words += [f"{name}={value!r}" for name, value in marker.kwargs.items()]
        raise UsageError(f"marker fakebrokers({', '.join(words)}) has no effect: {_why(item, marker)}")


def _is_used(item: pytest.Item, node: object, marker: pytest.Mark) -> bool:
    known = known_fixtures()
    for name in _fixtures(item):
        protocol, scope = known.get(name, ("", ""))
        if protocol and (not marker.args or protocol in marker.args) and _reaches(node, item, scope):
            return True
    return False


def _reaches(node: object, item: pytest.Item, scope: str) -> bool:
    """Whether a marker of the node says how a fake of that scope is made, for that test."""
    if scope in ("test", "session"):
        return scope == "test"
    kind = pytest.Class if scope == "class" else pytest.Module
    home = item.getparent(kind) or item
    return node in home.listchain()


def _others_may_use(config: pytest.Config, marker: pytest.Mark) -> bool:
    """Whether other tests of the class or the module make use of it, or were not even collected."""
    partly = any("::" in arg for arg in config.args) or config.getoption("lf", default=False)
    return bool(partly) or id(marker) in config.stash.get(OF_USE, {})


def _fixtures(item: pytest.Item) -> set[str]:
    """The fixtures that a test names, and those that others have asked for on its behalf."""
    return {*getattr(item, "fixturenames", ()), *lived_in(item).used}


def _why(item: pytest.Item, marker: pytest.Mark) -> str:
    known = known_fixtures()
    there = {name: known[name] for name in sorted(_fixtures(item)) if name in known}
    meant = [name for name, (protocol, _) in there.items() if not marker.args or protocol in marker.args]
    if meant:
        name = meant[0]
        protocol, scope = there[name]
        own = fixture_name(protocol)
        place = f", or put the marker on the {scope}" if scope != "session" else ""
        return (
            f"the fake of {name} is made for a whole {scope}; name the fixture {own} or {own}_factory{place}"
        )
    wanted = [fixture_name(name) for name in marker.args]
    if there:
        others = ", ".join(
            name for name in there if name.removesuffix("_factory") not in there.keys() - {name}
        )
        return f"this test has {others}; name the fixture {' or '.join(wanted)}, or mark another protocol"
    return f"this test has no fake; name a fixture such as {wanted[0] if wanted else 'rabbitmq_stream'}"
