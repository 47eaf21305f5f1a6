"""The fixtures of each protocol: ``NAME``, ``NAME_factory``, and one fake for a class, a module, a session.

Each is there as ``fake_NAME`` too, for tests in which ``NAME`` means something else; where a module of a
client has that name, it is the only one. pytest loads this module in every project where fakebrokers is
installed, so it imports next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from inspect import Parameter, Signature
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakValueDictionary

import pytest

from fakebrokers.description import ALIAS, fixture_name, fixture_names, folder_name, protocol_names
from fakebrokers.pytest_settings import SETTINGS

if TYPE_CHECKING:
    from fakebrokers.protocol import Protocol
    from fakebrokers.pytest_real import RealBroker
    from fakebrokers.server import FakeServer

#: First part of the names of the plugins that hold the fixtures of one protocol each.
FIXTURES = "fakebrokers_fixtures_of_"

#: The fakes that several tests share, by fixture, as long as something holds them.
SHARED = pytest.StashKey[WeakValueDictionary[str, "FakeServer"]]()


class Lived:
    """What is known of the fakes of one test while it runs.

    Attributes:
        started: Those of its fixtures that are its own: their titles in reports, and the fakes.
        before: How far the journals of all fakes were when the test, or its latest example, began.
        used: Fixtures that were set up with its markers, whoever asked for them.
        unmet: What it had expected of each fake and did not happen, by the title of the fake.
        example: Stops what is started from now on before the test ends: an example of Hypothesis has ended.
    """

    def __init__(self) -> None:
        self.started: list[tuple[str, FakeServer]] = []
        self.before: Mapping[FakeServer, int] = {}
        self.used: set[str] = set()
        self.unmet: dict[str, list[str]] = {}
        self.example: ExitStack | None = None


_LIVED = pytest.StashKey[Lived]()


def lived_in(item: pytest.Item) -> Lived:
    """What is known of the fakes of a test."""
    return item.stash.setdefault(_LIVED, Lived())


def forget(item: pytest.Item) -> None:
    """The test has ended: items live as long as the session, fakes need not."""
    if _LIVED in item.stash:
        del item.stash[_LIVED]


Scope = Literal["class", "module", "session"]
SCOPES: tuple[Scope, ...] = ("class", "module", "session")


def with_companions(fakes: list[tuple[str, FakeServer]]) -> list[tuple[str, FakeServer]]:
    """Fakes with their titles, and the servers that belong to them."""
    also = [(f"{title}.{name}", each) for title, fake in fakes for name, each in fake._companions.items()]
    return [*fakes, *also]


def known_fixtures() -> dict[str, tuple[str, str]]:
    """Every fixture with its protocol, and what its fakes are made for: ``test``, or a `Scope`."""
    found: dict[str, tuple[str, str]] = {}
    for protocol in protocol_names():
        for first in fixture_names(protocol):
            found |= {first: (protocol, "test"), f"{first}_factory": (protocol, "test")}
            found |= {f"{first}_{scope}": (protocol, scope) for scope in SCOPES}
    return found


class Starter:
    """Starts the fakes of one protocol, or hands out the real broker.

    Args:
        protocol: Which.
        request: Of the fixture; the markers are those of its test, class or module.
        stop: Gives what stops the next fake, which raises the errors that it kept.
        started: Called with each fake.
    """

    def __init__(
        self,
        protocol: Protocol,
        request: pytest.FixtureRequest,
        stop: Callable[[], ExitStack],
        started: Callable[[FakeServer], None],
    ) -> None:
        from fakebrokers.pytest_marks import marked_options

        settings = request.config.stash[SETTINGS]
        self._protocol = protocol
        self._folder = request.path.parent if request.scope != "session" else request.config.rootpath
        self._url = settings.urls.get(protocol.name)
        self._is_traced = bool(settings.trace)
        self._defaults: dict[str, Any] = {"profile": settings.profile, "exact": True}
        self._defaults |= self._with_plan(marked_options(request.node, protocol), "marker fakebrokers")
        if settings.seed is not None:
            self._defaults.setdefault("seed", settings.seed)
        self._stop = stop
        self._started = started
        self._count = 0

    def _with_plan(self, options: Mapping[str, Any], where: str) -> dict[str, Any]:
        from fakebrokers.pytest_marks import plan_of

        if "faults" not in options:
            return dict(options)
        return {**options, "faults": plan_of(options["faults"], self._folder, where)}

    def __repr__(self) -> str:
        return f"{self._protocol.fixture}_factory"

    def __call__(self, **options: Any) -> FakeServer | RealBroker:
        """One more; keywords as for the server class."""
        from fakebrokers.pytest_marks import check_keywords

        check_keywords(options, self._protocol, self._protocol.fixture, may_name=False)
        options = {**self._defaults, **self._with_plan(options, self._protocol.fixture)}
        self._count += 1
        if self._url is not None:
            from fakebrokers.pytest_real import real_instead, skip

            if self._count > 1:
                skip("a second one", self._url)
            return real_instead(self._protocol, self._url, options)
        server = self._stop().enter_context(self._protocol.load()(**options))
        if self._is_traced:
            from fakebrokers.viewer.calls import listen

            self._stop().callback(listen(server))
        self._started(server)
        return server


def _factory(request: pytest.FixtureRequest, protocol: Protocol) -> Iterator[Callable[..., Any]]:
    """Yield a function that starts fakes; stop them afterwards, which raises the errors they kept."""
    lived = lived_in(request.node)
    lived.used.add(f"{protocol.fixture}_factory")

    def note(server: FakeServer) -> None:
        titles = [title for title, _ in lived.started if title.partition(" ")[0] == protocol.fixture]
        lived.started.append(
            (f"{protocol.fixture} ({len(titles) + 1})" if titles else protocol.fixture, server)
        )

    with ExitStack() as stack:
        yield Starter(protocol, request, lambda: lived.example or stack, note)


def _shared(
    request: pytest.FixtureRequest, protocol: Protocol, name: str
) -> Iterator[FakeServer | RealBroker]:
    """Yield the one fake of a class, a module or the session."""

    def note(server: FakeServer) -> None:
        request.config.stash[SHARED][name] = server

    with ExitStack() as stack:
        yield Starter(protocol, request, lambda: stack, note)()


def _find(protocol: str) -> Protocol:
    from fakebrokers.protocol import find_protocol  # with the first fake: a project may use none

    return find_protocol(protocol)


def fixtures(protocol: str) -> ModuleType:
    """The fixtures of a protocol: a module, and a plugin."""
    name = fixture_name(protocol)
    module = ModuleType(f"{FIXTURES}{folder_name(protocol)}")

    def add(fixture: str, about: str, make: Callable[..., object], scope: Scope | None = None) -> None:
        """Add a fixture, and its second name, which stands for the same fake."""
        make.__doc__ = about
        vars(module)[fixture] = pytest.fixture(make, name=fixture, scope=scope or "function")
        if fixture.startswith(ALIAS):
            return
        alias = _hands_on(fixture, lambda value: value)
        alias.__doc__ = f"{about} The same as `{fixture}`, where that name means something else."
        vars(module)[ALIAS + fixture] = pytest.fixture(alias, name=ALIAS + fixture, scope=scope or "function")

    def factory(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
        yield from _factory(request, _find(protocol))

    add(name, f"A fresh {protocol} fake.", _hands_on(f"{name}_factory", lambda start: start()))
    about = f"Starts as many {protocol} fakes as you call it; keywords as for the server class."
    add(f"{name}_factory", about, factory)
    for scope in SCOPES:
        whole = f"One {protocol} fake for the whole {scope}; its reset() makes it fresh again."
        add(f"{name}_{scope}", whole, _of_scope(protocol, f"{name}_{scope}"), scope)
    return module


def _of_scope(protocol: str, name: str) -> Callable[[pytest.FixtureRequest], Iterator[object]]:
    def shared(request: pytest.FixtureRequest) -> Iterator[FakeServer | RealBroker]:
        yield from _shared(request, _find(protocol), name)

    return shared


def _hands_on(fixture: str, made: Callable[[Any], object]) -> Callable[..., object]:
    """A fixture function whose one argument is the fixture of that name."""

    def hand_on(**values: Any) -> object:
        return made(values[fixture])

    signature = Signature([Parameter(fixture, Parameter.KEYWORD_ONLY)])
    vars(hand_on)["__signature__"] = signature  # pytest reads the names of arguments there
    return hand_on
