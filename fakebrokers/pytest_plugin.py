"""pytest plugin: a fresh fake broker per test, and what it saw when the test fails.

    def test_orders(rabbitmq_stream):
        shop = Shop(rabbitmq_stream.url)

    @pytest.mark.fakebrokers(faults="lost_confirm.toml", seed=7)
    def test_orders_on_a_bad_day(rabbitmq_stream): ...

    def test_moving_house(rabbitmq_stream_factory):
        old, new = rabbitmq_stream_factory(), rabbitmq_stream_factory(profile="seed")

pytest loads this module in every project where fakebrokers is installed, so it imports next to nothing;
a server is loaded when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from fakebrokers import __version__
from fakebrokers.protocol import Protocol, find_protocol, fixture_name, known_name, protocol_names

if TYPE_CHECKING:
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


class Settings(NamedTuple):
    """The options of the command line and the ini file.

    Attributes:
        seed: For the decisions of all faults; None leaves it to the plan.
        profile: Which server the fakes resemble.
        journal_lines: How much of a journal a failure report shows; 0 for none.
    """

    seed: int | None
    profile: str
    journal_lines: int


SETTINGS = pytest.StashKey[Settings]()
#: The fakes that a test has started: their titles in reports, and the fakes.
STARTED = pytest.StashKey[list[tuple[str, "FakeServer"]]]()

OPTIONS = (
    ("seed", "N", "", "seed of the faults' random decisions (default: the one in the fault plan)"),
    ("profile", "NAME", "real", "which server the fakes resemble (default: real)"),
    ("journal-lines", "N", "30", "journal lines shown for a failed test (default: 30; 0: none)"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fakebrokers", "fake message brokers")
    for name, metavar, default, text in OPTIONS:
        group.addoption(f"--fakebrokers-{name}", metavar=metavar, help=text)
        parser.addini(f"fakebrokers_{name.replace('-', '_')}", text, default=default)


def pytest_configure(config: pytest.Config) -> None:
    for marker in (MARKER, *CONFORMANCE_MARKERS):
        config.addinivalue_line("markers", marker)
    config.stash[SETTINGS] = Settings(
        seed=_number(config, "seed"),
        profile=_option(config, "profile"),
        journal_lines=_number(config, "journal-lines") or 0,
    )


def pytest_report_header(config: pytest.Config) -> str:
    settings = config.stash[SETTINGS]
    seed = "" if settings.seed is None else f", seed {settings.seed}"
    return f"fakebrokers: {__version__}, profile {settings.profile}{seed}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what each fake saw to the report of a failure."""
    report = yield
    lines = item.config.stash[SETTINGS].journal_lines
    if report.failed and lines:
        for title, server in item.stash.get(STARTED, []):
            report.sections.append((f"fakebrokers journal: {title}", server.journal_excerpt(lines)))
    return report


@pytest.fixture
def conformance_scenario(request: pytest.FixtureRequest) -> Any:
    """The scenario of a test that `conformance.pytest.scenarios` has made, judged."""
    return request.param.judged(request)


def _option(config: pytest.Config, name: str) -> str:
    given = config.getoption(f"--fakebrokers-{name}")
    return str(config.getini(f"fakebrokers_{name.replace('-', '_')}") if given is None else given)


def _number(config: pytest.Config, name: str) -> int | None:
    text = _option(config, name)
    if not text:
        return None
    if not text.isdecimal():
        raise pytest.UsageError(f"--fakebrokers-{name} or its ini twin: expected a number, got {text!r}")
    return int(text)


def _marked_options(item: pytest.Item, protocol: Protocol) -> dict[str, Any]:
    """The keywords of all markers that apply to a test, the closest last."""
    options: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("fakebrokers"))):
        if not marker.args or protocol.name in [known_name(name) for name in marker.args]:
            options.update(marker.kwargs)
    return options


def _factory(request: pytest.FixtureRequest, name: str) -> Iterator[Callable[..., Any]]:
    """Yield a function that starts fakes; stop them afterwards, which raises the errors they kept."""
    protocol = find_protocol(name)
    item: pytest.Item = request.node
    settings = item.config.stash[SETTINGS]
    defaults: dict[str, Any] = {"profile": settings.profile, "exact": True, **_marked_options(item, protocol)}
    if settings.seed is not None:
        defaults.setdefault("seed", settings.seed)
    started = item.stash.setdefault(STARTED, [])
    count = 0

    def start(**options: Any) -> FakeServer:
        nonlocal count
        options = {**defaults, **options}
        faults = options.get("faults")
        if isinstance(faults, str | Path):
            options["faults"] = item.path.parent / faults
        elif isinstance(faults, list | tuple):
            options["faults"] = {"faults": faults}
        server = stack.enter_context(protocol.load()(**options))
        count += 1
        started.append((protocol.fixture if count == 1 else f"{protocol.fixture} ({count})", server))
        return server

    with ExitStack() as stack:
        yield start


def fixtures(protocol: str) -> ModuleType:
    """The fixtures of one protocol, ``NAME`` and ``NAME_factory``, in a module that is a plugin."""
    name = fixture_name(protocol)

    def factory(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
        yield from _factory(request, protocol)

    def fake(request: pytest.FixtureRequest) -> FakeServer:
        server: FakeServer = request.getfixturevalue(f"{name}_factory")()
        return server

    factory.__doc__ = f"Starts as many {protocol} fakes as you call it; keywords as for the server class."
    fake.__doc__ = f"A fresh {protocol} fake."
    module = ModuleType(f"{FIXTURES}{name}")
    vars(module)["factory"] = pytest.fixture(factory, name=f"{name}_factory")
    vars(module)["fake"] = pytest.fixture(fake, name=name)
    return module


def pytest_plugin_registered(plugin: object, manager: pytest.PytestPluginManager) -> None:
    """Add the fixtures of every protocol that this plugin, or conftest.py, has registered."""
    if getattr(plugin, "__name__", "").startswith(FIXTURES):
        return
    for protocol in protocol_names():
        name = f"{FIXTURES}{fixture_name(protocol)}"
        if not manager.has_plugin(name):
            manager.register(fixtures(protocol), name)
