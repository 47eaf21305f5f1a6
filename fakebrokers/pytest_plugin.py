"""pytest plugin: a fresh fake broker per test, and what it saw when the test fails.

    def test_orders(rabbitmq_stream):
        shop = Shop(rabbitmq_stream.url)

    @pytest.mark.fakebrokers(faults="lost_confirm.toml", seed=7)
    def test_orders_on_a_bad_day(rabbitmq_stream): ...

    def test_moving_house(rabbitmq_stream_factory):
        old, new = rabbitmq_stream_factory(), rabbitmq_stream_factory(profile="seed")

pytest loads this module in every project where fakebrokers is installed, so it imports next to nothing;
a server is loaded when a test asks for it. ``docs/pytest.md`` leads through all of it.

Around a test there are no hook wrappers: what others raise there would have a frame of this module.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import pytest

from fakebrokers.description import ALIAS, folder_name, protocol_names
from fakebrokers.errors import FakeBrokerError
from fakebrokers.pytest_fixtures import (
    FIXTURES,
    SHARED,
    fixtures,
    forget,
    lived_in,
    with_companions,
)
from fakebrokers.pytest_settings import SETTINGS, add_options, has_allure, read_settings
from fakebrokers.version import __version__

if TYPE_CHECKING:
    from fakebrokers.server import FakeServer
    from fakebrokers.simulation import Simulation

MARKER = """\
fakebrokers(*protocols, faults=None, profile="real", seed=None, **options): \
set up the fakes that this test, class or module uses; the keywords are those of the server classes, \
`faults` is a list of faults, a plan, or a plan's path beside the test file. \
With names of protocols, only for these. The marker closest to the test wins, keyword by keyword."""

SIMULATION_MARKER = """\
simulation(seed=0, shuffle=False, patch=False, longest_s=...): \
how the simulation of this test is made; the keywords are those of fakebrokers.simulation.Simulation."""

#: Marks of the tests that `conformance.pytest.scenarios` makes; ``-m MUST`` chooses by level.
CONFORMANCE_MARKERS = (
    "conformance(id, section, level, protocol): a scenario of the conformance suite",
    "MUST: a scenario whose requirement follows from the protocol's document",
    "SHOULD: a scenario for good practice",
    "MAY: a scenario for an optional feature",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    for marker in (MARKER, SIMULATION_MARKER, *CONFORMANCE_MARKERS):
        config.addinivalue_line("markers", marker)
    config.stash[SETTINGS] = read_settings(config)
    config.stash[SHARED] = WeakValueDictionary()
    mutate = config.stash[SETTINGS].mutate
    if mutate is not None:
        from fakebrokers.mutate.plugin import Mutate

        config.pluginmanager.register(Mutate(config, mutate), "fakebrokers_mutate")


def pytest_report_header(config: pytest.Config) -> str:
    settings = config.stash[SETTINGS]
    seed = "" if settings.seed is None else f", seed {settings.seed}"
    real = "".join(f", real {name} at {url}" for name, url in settings.urls.items())
    return f"fakebrokers: {__version__}, profile {settings.profile}{seed}{real}"


def pytest_plugin_registered(plugin: object, manager: pytest.PytestPluginManager) -> None:
    """Add the fixtures of every protocol that this plugin, or conftest.py, has registered."""
    if getattr(plugin, "__name__", "").startswith(FIXTURES):
        return
    for protocol in protocol_names():
        name = f"{FIXTURES}{folder_name(protocol)}"
        if not manager.has_plugin(name):
            manager.register(fixtures(protocol), name)


@pytest.fixture
def conformance_scenario(request: pytest.FixtureRequest) -> Any:
    """The scenario of a test that `conformance.pytest.scenarios` has made, judged."""
    return request.param.judged(request)


@pytest.fixture
def simulation(request: pytest.FixtureRequest) -> Iterator[Simulation]:
    """Applications, their clients and fakes on virtual time; an async test that has it runs inside."""
    from fakebrokers.simulation.fixture import simulation_of

    yield from simulation_of(request)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run async tests that have a simulation inside of it."""
    __tracebackhide__ = True
    if "simulation" not in pyfuncitem.funcargs or "fakebrokers.simulation.fixture" not in sys.modules:
        return None
    from fakebrokers.simulation.fixture import run_test

    return run_test(pyfuncitem)


# what becomes of a test


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Look which markers of classes and modules some test uses, before any test is left out."""
    marked = [item for item in items if item.get_closest_marker("fakebrokers") is not None]
    if marked:
        from fakebrokers.pytest_use import note_use

        note_use(config, marked)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Remember which fakes there are already."""
    if "fakebrokers.server" in sys.modules:
        from fakebrokers.pytest_report import journals_now

        lived_in(item).before = journals_now()


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """All fixtures are there: is each marker of use, and does each example get fakes of its own?"""
    if item.get_closest_marker("fakebrokers") is not None:
        from fakebrokers.pytest_use import check_use

        check_use(item)
    has_fakes = "fakebrokers.server" in sys.modules or lived_in(item).used
    if has_fakes and getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        from fakebrokers.pytest_hypothesis import prepare

        prepare(item)


@pytest.hookimpl(trylast=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Check at the end of a test what it expected of its fakes: the test fails, rather than its teardown."""
    __tracebackhide__ = True
    fail = item.config.stash[SETTINGS].unfired == "fail"
    problems: list[str] = []
    for _, server in _fakes(item):
        problems += server.expectations.problems()
        problems += _unfired(server) if fail else ()
        server.expectations.clear()
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)
    for server in _shared(item).values():
        server.check()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """What is still expected now was reported already, or the test did not get so far."""
    for _, server in _fakes(item):
        server.expectations.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what each fake saw to the report of a failure."""
    if call.excinfo is not None:
        _hide_frames()  # before pytest looks at the traceback
    report = yield
    if report.failed and item.config.stash[SETTINGS].journal_lines:
        _add_journals(item, call, report)
    wanted = call.excinfo is not None and report.failed and item.config.stash[SETTINGS].trace
    if wanted and call.excinfo is not None and "fakebrokers.server" in sys.modules:
        from fakebrokers.pytest_trace import add_trace

        add_trace(item, _fakes(item), report, call.excinfo.value)
    if call.when == "teardown":
        forget(item)
    return report


def _hide_frames() -> None:
    """Leave this package's own frames out of tracebacks of the errors that it raises on purpose.

    pytest looks for ``__tracebackhide__`` among the globals of each frame.
    """
    for name, module in sys.modules.copy().items():
        if name.partition(".")[0] == __package__ and module is not None:
            vars(module).setdefault("__tracebackhide__", _is_on_purpose)


def _is_on_purpose(error: pytest.ExceptionInfo[BaseException]) -> bool:
    return isinstance(error.value, FakeBrokerError)


def _add_journals(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    if "fakebrokers.server" not in sys.modules:
        return
    from fakebrokers.pytest_report import all_fakes, journals

    fakes = _fakes(item)
    to_allure = has_allure(item.config) and item.get_closest_marker("conformance") is None  # which says more
    if call.when == "call":
        lived_in(item).unmet = {title: each.expectations.problems() for title, each in all_fakes(item, fakes)}
    for seen in journals(item, fakes, lived_in(item).unmet):
        report.sections.append((f"fakebrokers journal: {seen.title}", seen.text))
        if to_allure:
            from fakebrokers.pytest_allure import attach_fake

            attach_fake(seen)
    if "fakebrokers.simulation.fixture" in sys.modules:
        from fakebrokers.simulation.fixture import report_of

        if text := report_of(item):
            report.sections.append(("fakebrokers simulation", text))


def _fakes(item: pytest.Item) -> list[tuple[str, FakeServer]]:
    """The fakes that a test has from fixtures, with their titles."""
    return with_companions([*lived_in(item).started, *_shared(item).items()])


def _shared(item: pytest.Item) -> dict[str, FakeServer]:
    """The fakes that a test shares with others, through other fixtures too."""
    shared = item.config.stash[SHARED]
    if not shared:
        return {}
    used = set(getattr(item, "fixturenames", ()))
    return {name: fake for name, fake in shared.items() if not used.isdisjoint((name, ALIAS + name))}


def _unfired(server: FakeServer) -> list[str]:
    try:
        server.faults.check()
    except FakeBrokerError as error:
        return str(error).splitlines()
    return []
