"""The plugin's options, on the command line and in the ini file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pytest

from fakebrokers.description import known_name
from fakebrokers.errors import UsageError


class Mutating(NamedTuple):
    """The options of ``--fakebrokers-mutate``.

    Attributes:
        least: The score in percent below which the run fails.
        wait_s: The least time that a test gets with a misbehaving broker, in seconds.
        json: Where the result is written; "" for nowhere.
        only: The names of the behaviours to try; none: all.
    """

    least: int
    wait_s: float
    json: str
    only: tuple[str, ...]


class Settings(NamedTuple):
    """The options of the command line and the ini file.

    Attributes:
        seed: For the decisions of all faults; None leaves it to the plan.
        profile: Which server the fakes resemble.
        journal_lines: How much of a journal a failure report shows; 0 for none.
        unfired: What a fault that never took place means: ``report`` or ``fail``.
        urls: Real brokers to use instead of fakes, by protocol.
        trace: Where pages of failed tests are written; "" for nowhere.
        replay: Options that make another run decide the same.
        mutate: Whether, and how, tests run again with misbehaving brokers.
    """

    seed: int | None
    profile: str
    journal_lines: int
    unfired: str
    urls: Mapping[str, str]
    trace: str
    replay: tuple[str, ...]
    mutate: Mutating | None


SETTINGS = pytest.StashKey[Settings]()

OPTIONS = (
    ("seed", "N", "", "seed of the faults' random decisions (default: the one in the fault plan)"),
    ("profile", "NAME", "real", "which server the fakes resemble (default: real)"),
    ("journal-lines", "N", "30", "journal lines shown for a failed test (default: 30; 0: none)"),
    (
        "unfired",
        "report|fail",
        "report",
        "what becomes of a test that passes although a fault of its never took place (default: report, "
        "in the reports of failed tests only; fail: it fails)",
    ),
    (
        "trace",
        "on-failure|off",
        "off",
        "on-failure: write a page for each failed test, with all that its fakes saw (default: off)",
    ),
    (
        "trace-dir",
        "DIR",
        "fakebrokers-traces",
        "where these pages are written (default: fakebrokers-traces)",
    ),
    ("mutate-json", "FILE", "", "with --fakebrokers-mutate: write the result to this file too"),
    (
        "mutate-min",
        "PERCENT",
        "0",
        "with --fakebrokers-mutate: the run fails if its score is below this (default: 0)",
    ),
    ("mutate-only", "NAMES", "", "with --fakebrokers-mutate: only these behaviours, separated by commas"),
    (
        "mutate-wait",
        "SECONDS",
        "10",
        "with --fakebrokers-mutate: seconds that a test may always wait (default: 10)",
    ),
)
MUTATE_HELP = "run the tests again with brokers that misbehave, and list what no test has noticed"
URL_HELP = "use a real broker instead of the fake in tests that need no faults; may be given several times"


def add_options(parser: pytest.Parser) -> None:
    """Tell pytest which options there are."""
    group = parser.getgroup("fakebrokers", "fake message brokers")
    for name, metavar, default, text in OPTIONS:
        group.addoption(f"--fakebrokers-{name}", metavar=metavar, help=text)
        parser.addini(f"fakebrokers_{name.replace('-', '_')}", text, default=default)
    group.addoption("--fakebrokers-mutate", action="store_true", help=MUTATE_HELP)
    group.addoption("--fakebrokers-url", metavar="[PROTOCOL=]URL", action="append", default=[], help=URL_HELP)


def read_settings(config: pytest.Config) -> Settings:
    """What was said.

    Raises:
        pytest.UsageError: Something of it makes no sense.
    """
    profile = config.getoption("--fakebrokers-profile")
    return Settings(
        seed=_number(config, "seed"),
        profile=_option(config, "profile"),
        journal_lines=_number(config, "journal-lines") or 0,
        unfired=_word(config, "unfired", ("report", "fail")),
        urls=_urls(config),
        trace=_option(config, "trace-dir") if _word(config, "trace", ("off", "on-failure")) != "off" else "",
        replay=() if profile is None else (f"--fakebrokers-profile={profile}",),
        mutate=_mutating(config) if config.getoption("--fakebrokers-mutate") else None,
    )


def _mutating(config: pytest.Config) -> Mutating:
    return Mutating(
        least=_number(config, "mutate-min") or 0,
        wait_s=_number(config, "mutate-wait") or 0,
        json=_option(config, "mutate-json"),
        only=tuple(filter(None, _option(config, "mutate-only").split(","))),
    )


def has_allure(config: pytest.Config) -> bool:
    """Whether allure-pytest is there and writes a report."""
    return config.pluginmanager.has_plugin("allure_listener")


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


def _word(config: pytest.Config, name: str, words: tuple[str, ...]) -> str:
    text = _option(config, name)
    if text not in words:
        expected = " or ".join(words)
        raise pytest.UsageError(f"--fakebrokers-{name} or its ini twin: expected {expected}, got {text!r}")
    return text


def _urls(config: pytest.Config) -> Mapping[str, str]:
    try:
        return _by_protocol(config.getoption("--fakebrokers-url"))
    except UsageError as error:
        raise pytest.UsageError(f"--fakebrokers-url: {error}") from None


def _by_protocol(urls: Iterable[str]) -> dict[str, str]:
    """The URLs of real brokers.

    Raises:
        UsageError: One names no protocol, or no address.
    """
    found = {}
    for given in urls:
        name, _, url = given.partition("=")
        if "://" in name:  # no protocol before the address: its scheme is one
            name, url = given.partition("://")[0], given
        if not _is_address(url):
            raise UsageError(f"expected PROTOCOL=URL, such as pzq=tcp://127.0.0.1:9000, got {given!r}")
        found[known_name(name)] = url
    return found


def _is_address(url: str) -> bool:
    from urllib.parse import urlsplit  # here: a project without fakes loads no parser of addresses

    try:
        address = urlsplit(url)
        return bool(address.scheme and address.hostname and address.port != 0)
    except ValueError:
        return False
