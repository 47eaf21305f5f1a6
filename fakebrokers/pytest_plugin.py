"""pytest plugin: a fresh fake broker per test, and what it saw when the test fails.

    def test_orders(rabbitmq_stream):
        shop = Shop(rabbitmq_stream.url)

    @pytest.mark.fakebrokers(faults="lost_confirm.toml", seed=7)
    def test_orders_on_a_bad_day(rabbitmq_stream): ...

    def test_moving_house(rabbitmq_stream_factory):
        old, new = rabbitmq_stream_factory(), rabbitmq_stream_factory(profile="seed")

pytest loads this module in every project where fakebrokers is installed, so it imports next to nothing;
a server is loaded when a test asks for it. ``docs/pytest.md`` leads through all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from fakebrokers import __version__
from fakebrokers.errors import FakeBrokerError
from fakebrokers.protocol import Protocol, find_protocol, fixture_name, protocol_names
from fakebrokers.pytest_settings import Settings, add_options, read_settings

if TYPE_CHECKING:
    from fakebrokers.pytest_real import RealBroker
    from fakebrokers.server import FakeServer

MARKER = """\
fakebrokers(*protocols, faults=None, profile="real", seed=None, **options): \
set up the fakes that this test, class or module uses; the keywords are those of the server classes, \
`faults` is a list of faults, a plan, or a plan's path beside the test file. \
With names of protocols, only for these. The marker closest to the test wins, keyword by keyword."""


#: Marks of the tests that `conformance.pytest.scenarios` makes; ``-m MUST`` chooses by level.
CONFORMANCE_MARKERS = (
    "conformance(id, section, level, protocol): a scenario of the conformance suite",
    "MUST: a scenario whose requirement follows from the protocol's document",
    "SHOULD: a scenario for good practice",
    "MAY: a scenario for an optional feature",
)

#: First part of the names of the plugins that hold the fixtures of one protocol each.
FIXTURES = "fakebrokers_fixtures_of_"


SETTINGS = pytest.StashKey[Settings]()
#: The fakes that a test has started: their titles in reports, and the fakes.
STARTED = pytest.StashKey[list[tuple[str, "FakeServer"]]]()
#: The fakes of the whole session, by fixture.
SHARED = pytest.StashKey[dict[str, "FakeServer"]]()
#: What a failed test had expected of each fake and did not happen, by the title of the fake.
UNMET = pytest.StashKey[dict[str, list[str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    for marker in (MARKER, *CONFORMANCE_MARKERS):
        config.addinivalue_line("markers", marker)
    config.stash[SETTINGS] = read_settings(config)
    config.stash[SHARED] = {}


def pytest_report_header(config: pytest.Config) -> str:
    settings = config.stash[SETTINGS]
    seed = "" if settings.seed is None else f", seed {settings.seed}"
    real = "".join(f", real {name} at {url}" for name, url in settings.urls.items())
    return f"fakebrokers: {__version__}, profile {settings.profile}{seed}{real}"


# what becomes of a test


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Check at the end of a test what it expected of its fakes: the test fails, rather than its teardown."""
    try:
        result = yield
    except BaseException:
        item.stash[UNMET] = {title: server.expectations.problems() for title, server in _fakes(item)}
        raise
    fail = item.config.stash[SETTINGS].unfired == "fail"
    problems: list[str] = []
    for _, server in _fakes(item):
        problems += server.expectations.problems()
        problems += _unfired(server) if fail else ()
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)
    for server in _shared(item).values():
        server.check()
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """What is still expected now was told already, or the test did not get so far."""
    for _, server in _fakes(item):
        server.expectations.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what each fake saw to the report of a failure."""
    if call.excinfo is not None:
        from fakebrokers.pytest_report import hide_frames

        hide_frames()  # before pytest looks at the traceback
    report = yield
    settings = item.config.stash[SETTINGS]
    if report.failed and settings.journal_lines:
        from fakebrokers.pytest_report import describe, replay_command

        for title, server in _fakes(item):
            seed = f"--fakebrokers-seed={server.engine.injector.seed}"
            replay = replay_command(item, (seed, *settings.replay))
            unmet = item.stash.get(UNMET, {}).get(title, [])
            text = describe(server, settings.journal_lines, replay, unmet)
            report.sections.append((f"fakebrokers journal: {title}", text))
    if call.when == "teardown":  # the last report: items live as long as the session, fakes need not
        item.stash.setdefault(STARTED, []).clear()
    return report


def _fakes(item: pytest.Item) -> list[tuple[str, FakeServer]]:
    """The fakes that a test has, with their titles."""
    own = [*item.stash.get(STARTED, []), *_shared(item).items()]
    also = [(f"{title}.{name}", each) for title, fake in own for name, each in fake.companions.items()]
    return [*own, *also]


def _shared(item: pytest.Item) -> dict[str, FakeServer]:
    """The fakes of the session that a test uses, through other fixtures too."""
    used = getattr(item, "fixturenames", ())
    return {name: fake for name, fake in item.config.stash[SHARED].items() if name in used}


def _unfired(server: FakeServer) -> list[str]:
    try:
        server.faults.check()
    except FakeBrokerError as error:
        return str(error).splitlines()
    return []


@pytest.fixture
def conformance_scenario(request: pytest.FixtureRequest) -> Any:
    """The scenario of a test that `conformance.pytest.scenarios` has made, judged."""
    return request.param.judged(request)


# fixtures


class Starter:
    """Starts the fakes of one protocol for a test or a session, or hands out the real broker.

    Args:
        protocol: Which.
        settings: See `Settings`.
        options: What markers say.
        stack: Stops the fakes, which raises the errors that they kept.
        started: Called with each fake.
    """

    def __init__(
        self,
        protocol: Protocol,
        settings: Settings,
        options: Mapping[str, Any],
        stack: ExitStack,
        started: Callable[[FakeServer], None],
    ) -> None:
        self._protocol = protocol
        self._url = settings.urls.get(protocol.name)
        self._defaults = {"profile": settings.profile, "exact": True, **options}
        if settings.seed is not None:
            self._defaults.setdefault("seed", settings.seed)
        self._stack = stack
        self._started = started
        self._count = 0

    def start(self, **options: Any) -> FakeServer | RealBroker:
        """One more; keywords as for the server class."""
        from fakebrokers.pytest_marks import check_keywords

        check_keywords(options, self._protocol, self._protocol.fixture, may_name=False)
        options = {**self._defaults, **options}
        self._count += 1
        if self._url is not None:
            from fakebrokers.pytest_real import real_instead, skip

            if self._count > 1:
                skip("a second one", self._url)
            return real_instead(self._protocol, self._url, options)
        server = self._stack.enter_context(self._protocol.load()(**options))
        self._started(server)
        return server


def _factory(request: pytest.FixtureRequest, name: str) -> Iterator[Callable[..., Any]]:
    """Yield a function that starts fakes; stop them afterwards, which raises the errors they kept."""
    from fakebrokers.pytest_marks import marked_options, plan_of

    protocol = find_protocol(name)
    item: pytest.Item = request.node
    started = item.stash.setdefault(STARTED, [])
    count = 0

    def note(server: FakeServer) -> None:
        nonlocal count
        count += 1
        started.append((protocol.fixture if count == 1 else f"{protocol.fixture} ({count})", server))

    def start(**options: Any) -> FakeServer | RealBroker:
        if "faults" in options:
            options["faults"] = plan_of(options["faults"], item.path.parent, protocol.fixture)
        return starter.start(**options)

    marked = marked_options(item, protocol)
    if "faults" in marked:
        marked["faults"] = plan_of(marked["faults"], item.path.parent, "marker fakebrokers")
    with ExitStack() as stack:
        starter = Starter(protocol, item.config.stash[SETTINGS], marked, stack, note)
        yield start


def _session(request: pytest.FixtureRequest, name: str) -> Iterator[FakeServer | RealBroker]:
    """Yield the fake of the whole session."""
    protocol = find_protocol(name)
    config = request.config

    def note(server: FakeServer) -> None:
        config.stash[SHARED][f"{protocol.fixture}_session"] = server

    with ExitStack() as stack:
        yield Starter(protocol, config.stash[SETTINGS], {}, stack, note).start()


def fixtures(protocol: str) -> ModuleType:
    """The fixtures of a protocol, ``NAME``, ``NAME_factory`` and ``NAME_session``: a module, and a plugin."""
    name = fixture_name(protocol)

    def factory(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
        yield from _factory(request, protocol)

    def fake(request: pytest.FixtureRequest) -> FakeServer:
        server: FakeServer = request.getfixturevalue(f"{name}_factory")()
        return server

    def session(request: pytest.FixtureRequest) -> Iterator[FakeServer | RealBroker]:
        yield from _session(request, protocol)

    factory.__doc__ = f"Starts as many {protocol} fakes as you call it; keywords as for the server class."
    fake.__doc__ = f"A fresh {protocol} fake."
    session.__doc__ = f"One {protocol} fake for the whole session; its reset() makes it fresh again."
    module = ModuleType(f"{FIXTURES}{name}")
    vars(module)["factory"] = pytest.fixture(factory, name=f"{name}_factory")
    vars(module)["fake"] = pytest.fixture(fake, name=name)
    vars(module)["session"] = pytest.fixture(session, name=f"{name}_session", scope="session")
    return module


def pytest_plugin_registered(plugin: object, manager: pytest.PytestPluginManager) -> None:
    """Add the fixtures of every protocol that this plugin, or conftest.py, has registered."""
    if getattr(plugin, "__name__", "").startswith(FIXTURES):
        return
    for protocol in protocol_names():
        name = f"{FIXTURES}{fixture_name(protocol)}"
        if not manager.has_plugin(name):
            manager.register(fixtures(protocol), name)
