"""Tests with ``@given``: each example gets fakes of its own, and what fails shows their journals."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, note, settings

from fakebrokers.errors import UsageError
from fakebrokers.protocol import find_protocol, fixture_name
from fakebrokers.pytest_fixtures import known_fixtures, lived_in

if TYPE_CHECKING:
    from fakebrokers.server import FakeServer

#: Where Hypothesis keeps the settings of a test function; its own plugin changes them there, too.
HELD = "_hypothesis_internal_use_settings"
#: Mark of a function whose examples have fakes of their own; who wraps it copies that.
MARK = "of_fakebrokers"

#: The test that runs; cases of one function share what Hypothesis calls.
_running: list[pytest.Function] = []


def prepare(item: pytest.Item) -> None:
    """Make each example of a test begin and end its own fakes.

    Raises:
        UsageError: The test has one fake for all of its examples, and does not say that it means to.
    """
    if not isinstance(item, pytest.Function):
        return
    _check_fixtures(item)
    _running[:] = [item]
    handle = getattr(item.obj, "hypothesis", None)  # a state machine has none
    if handle is not None and not hasattr(handle.inner_test, MARK):
        handle.inner_test = _with_own_fakes(handle.inner_test)
        setattr(handle.inner_test, MARK, True)


def _check_fixtures(item: pytest.Function) -> None:
    """Refuse what gives all examples one fake; a factory gives each its own, and Hypothesis need not warn."""
    test = getattr(item.obj, "__func__", item.obj)
    used: settings = getattr(test, HELD, None) or settings()
    if HealthCheck.function_scoped_fixture in used.suppress_health_check:
        return
    # as Hypothesis looks for them: no fixtures, but values, are the arguments that parametrize supplies
    info = item._request._fixturemanager.getfixtureinfo(node=item, func=item.function, cls=None)
    known, defined = known_fixtures(), info.name2fixturedefs
    named = inspect.signature(item.function).parameters.keys() & defined.keys()
    for name in sorted(named & known.keys()):
        protocol, scope = known[name]
        if scope == "test" and not name.endswith("_factory"):
            raise UsageError(
                f"@given calls a test many times, and all examples would share the fake of {name}: name "
                f"{fixture_name(protocol)}_factory and call it in the test, which gives each example its "
                f"own, or use `with {find_protocol(protocol).server_name}() as broker:`"
            )
    if all(name in known for name in named if defined[name][-1].scope == "function"):
        suppressed = {HealthCheck.function_scoped_fixture, *used.suppress_health_check}
        setattr(test, HELD, settings(parent=used, suppress_health_check=tuple(suppressed)))


def search_only(item: pytest.Item) -> None:
    """Let a test neither try examples that failed before, nor keep or shrink one that fails now."""
    if isinstance(item, pytest.Function):
        test = getattr(item.obj, "__func__", item.obj)
        used: settings = getattr(test, HELD, None) or settings()
        setattr(test, HELD, settings(parent=used, database=None, phases=(Phase.explicit, Phase.generate)))


def _with_own_fakes(inner: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(inner):

        @wraps(inner)
        async def later(*args: Any, **values: Any) -> None:
            __tracebackhide__ = True
            with _example(_running[0]):
                await inner(*args, **values)

        return later

    @wraps(inner)
    def at_once(*args: Any, **values: Any) -> None:
        __tracebackhide__ = True
        with _example(_running[0]):
            inner(*args, **values)

    return at_once


@contextmanager
def _example(item: pytest.Function) -> Iterator[None]:
    """Stop what a factory starts in this example, and note the journals of all of its fakes."""
    from fakebrokers.pytest_report import journals_now

    lived = lived_in(item)
    known = len(lived.started)
    lived.before = journals_now()
    try:
        with ExitStack() as lived.example:
            yield
    finally:
        note(_Journals(item, lived.started[known:]))  # printed only for the last example, if that fails
        del lived.started[known:]
        lived.example = None
        lived.before = journals_now()


class _Journals:
    """What the fakes of an example saw; written down only if Hypothesis wants to print it."""

    def __init__(self, item: pytest.Item, own: list[tuple[str, FakeServer]]) -> None:
        self._item = item
        self._own = own

    def __repr__(self) -> str:
        from fakebrokers.pytest_report import journals

        found = journals(self._item, self._own, {})
        return "\n".join(f"fakebrokers journal: {seen.title}\n{seen.text}" for seen in found)
