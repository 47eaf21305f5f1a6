"""Expressions of subscriptions, names of queues, and domains."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.blazingmq.domains import EXAMPLE_APPS, Domain, Domains, load_domains
from fakebrokers.blazingmq.expressions import BadExpression, compile_expression
from fakebrokers.blazingmq.refusals import Refused
from fakebrokers.blazingmq.uri import Uri, parse_uri
from fakebrokers.errors import UsageError

TOKENS = ["i", "s", "t", "1", '"x"', "==", "<", "&&", "!", "-", "+", "%", "(", ")", "exists"]
VALUES: dict[str, bool | int | str] = {"i": 7, "n": -3, "s": "text", "t": True, "f": False, "a.b_1": 1}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("i == 7", True),
        ("i != 7", False),
        ("i > 6 && i >= 7 && i < 8 && i <= 7", True),
        ('s == "text"', True),
        ('s < "uuu"', True),
        ('"text" == s', True),
        ("t", True),
        ("f", False),
        ("!f", True),
        ("~f && t", True),
        ("!t || t", True),
        ("f || f", False),
        ("a.b_1 == 1", True),
        ("i + 1 == 8", True),
        ("i * 2 + 1 == 15", True),
        ("1 + i * 2 == 15", True),
        ("(1 + i) * 2 == 16", True),
        ("i - 3 - 2 == 2", True),
        ("n / 2 == -1", True),
        ("n % 2 == -1", True),
        ("-n == 3", True),
        ("-i < 0", True),
        ("i == 7 || absent == 1", True),
        ("f && absent == 1", False),
        ("exists(i)", True),
        ("exists(absent)", False),
        ("!exists(absent) && i == 7", True),
        ("t && true", True),
        ("t && false", False),
        ("i\t==\n7", True),
        # with true and false, as they stand in the text (session expressions)
        ("t == true", True),
        ("t == false", False),
        ("t != true", False),
        ("t != false", True),
        ("true == t && false == f", True),
        ("(i == 7) == true", True),
        ("!t == false", True),
        ("(true == true) == t", True),
        ("(true != true) == f", True),
        ("(i == true) == 7", True),
        # what the properties do not allow to answer
        ("absent == 1", False),
        ("!(absent == 1)", False),
        ('i == "7"', False),
        ("s == 1", False),
        ("t == t", False),
        ("t < true", False),
        ("i == true", False),
        ("i != true", False),
        ("absent != true", False),
        ("i", False),
        ("!i", False),
        ("s && t", False),
        ("i / 0 == 1", False),
        ("i % 0 == 1", False),
        ("s + 1 == 1", False),
    ],
)
def test_what_matches(text: str, matches: bool) -> None:
    assert compile_expression(text)(VALUES) is matches


def test_numbers_have_64_bits() -> None:
    assert compile_expression("i + 9223372036854775807 < 0")(VALUES)
    with pytest.raises(BadExpression, match="64 bits"):
        compile_expression("i == 9223372036854775808")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 == 1",
        "i ==",
        "== i",
        "(i == 1",
        "i == 1)",
        "i = 1",
        "i == 1 == 2",
        "i < 1 < 2",
        "i-1 == 6",  # -1 is a number
        "i & 1",
        '"open',
        "exists()",
        "exists(1)",
        "exists(i",
        "$i == 1",
        "i == 1 i",
        "x" * 129,
        " && ".join(["t"] * 12),
        "+".join(["i"] * 11),
    ],
)
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(BadExpression, match="expected"):
        compile_expression(text)


@given(text=st.lists(st.sampled_from(TOKENS), max_size=12).map(" ".join))
def test_any_text(text: str) -> None:
    with suppress(BadExpression):
        assert compile_expression(text)(VALUES) in (True, False)


@pytest.mark.parametrize(
    ("text", "uri"),
    [
        ("bmq://d.e-f/q_1", Uri("d.e-f", "q_1")),
        ("bmq://d/q?id=app", Uri("d", "q", "app")),
        ("bmq://d.~eu/q", Uri("d", "q", "", "eu")),
    ],
)
def test_names_of_queues(text: str, uri: Uri) -> None:
    assert parse_uri(text) == uri
    assert uri.canonical == text.partition("?")[0]


@pytest.mark.parametrize(
    "text",
    ["", "bmq://d", "bmq:///q", "bmq://d/", "bmq://d/q?x=1", "bmq://d/q/r", "bmq://d/q q", "bmq://d\udc80/q"],
)
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(Refused):
        parse_uri(text)


def test_domains_need_no_configuration() -> None:
    domains = Domains()
    for name, mode in (
        ("bmq.test.mmap.priority", "priority"),
        ("bmq.test.mmap.fanout", "fanout"),
        ("bmq.test.mem.broadcast", "broadcast"),
        ("bmq.test.persistent.priority.sc", "priority"),
    ):
        assert domains.find(name).mode == mode
    assert domains.find("bmq.test.mmap.fanout").app_ids == EXAMPLE_APPS
    with pytest.raises(Refused, match="json' doesn't exist"):
        domains.find("my.domain")


def test_domains_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "domains.toml"
    path.write_text('[domains."a.b"]\nmode = "fanout"\napp_ids = ["x"]\n[domains.c]\nqueue_messages = 5\n')
    domains = load_domains(path)
    assert domains.find("a.b") == Domain("fanout", ("x",))
    assert domains.find("c") == Domain(queue_messages=5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[domains.c]\nmod = 1", "domain 'c': .*mod"),
        ("[domains.c]\nmode = 'x'", "domain 'c': .*mode"),
        ("[other]\nx = 1", r"expected tables \[domains\.NAME\] and nothing else, got other"),
        ("[", "expected a TOML file"),
    ],
)
def test_files_that_hold_no_domains(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "domains.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=problem):
        load_domains(path)
    with pytest.raises(UsageError, match="expected a TOML file"):
        load_domains(tmp_path / "absent.toml")
