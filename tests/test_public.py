"""The page on what is public says neither more nor less than there is."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import fakebrokers
from fakebrokers import errors
from fakebrokers.control.brokers import operations_of
from fakebrokers.faults.control import FaultControl
from fakebrokers.protocol import protocols
from fakebrokers.proxy import Proxy
from fakebrokers.renamed import HOOKS
from fakebrokers.server import FakeServer

PAGE = (Path(__file__).parents[1] / "docs" / "reference" / "api" / "public.md").read_text("utf-8")
CLASSES: dict[str, type[FakeServer]] = {name: getattr(fakebrokers, name) for name in fakebrokers.__all__}


def words(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def table(title: str) -> dict[str, str]:
    """The rows of the first table below a heading: the second cell by the first."""
    part = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("|")][2:]
    return {row[0].strip("`"): row[1] for row in rows}


def attributes(kind: type, made: object) -> set[str]:
    """What has no underscore, of a class and of an object of it, but old names."""
    names = {name for name, _ in inspect.getmembers_static(kind)} | set(vars(made))
    old = {row.partition(".")[2] for row in table("Old names") if row.startswith(f"{kind.__name__}.")}
    return {name for name in names if not name.startswith("_")} - old - {*HOOKS}


def inner() -> set[str]:
    return set(words(PAGE.partition("inner all the same:")[2].partition(". They")[0]))


@pytest.mark.parametrize("module", table("To import"))
def test_modules(module: str) -> None:
    listed = words(table("To import")[module])
    loaded = import_module(module)
    if module == "fakebrokers.errors":
        there = [n for n, each in vars(errors).items() if inspect.isclass(each) and each.__module__ == module]
        assert sorted(there) == listed
    else:
        assert sorted(loaded.__all__) == listed
    assert all(getattr(loaded, name) is not None for name in listed)


@pytest.mark.parametrize("name", [*CLASSES, "Proxy"])
def test_classes(name: str) -> None:
    kind = CLASSES.get(name, Proxy)
    made = Proxy("127.0.0.1:1") if kind is Proxy else kind()
    listed = table("Of the fakes")
    there = attributes(kind, made) - inner()
    assert sorted(there - set(words(listed["all"]))) == words(listed[name])
    assert set(words(listed["all"])) <= there


def test_faults_of_a_fake() -> None:
    with fakebrokers.Narconi() as narconi:
        there = attributes(FaultControl, narconi.faults)
    assert sorted(there) == words(table("Of the fakes")["broker.faults"])


def test_what_is_inner_is_there() -> None:
    made = [kind() for kind in CLASSES.values()]
    assert inner() == {name for each in made for name in inner() if name in attributes(type(each), each)}


def test_old_names_are_there() -> None:
    for old, new in table("Old names").items():
        if "(" in old:
            name, keyword = old.removesuffix("=...)").split("(")
            assert words(new) == [f"{name}({CLASSES[name]._old_keywords[keyword][0]}=...)"]
        elif not old.endswith("as a list"):
            name, method = old.split(".")
            assert inspect.getattr_static(CLASSES[name], method) is not None
    told = {row.partition("(")[2].partition("=")[0] for row in table("Old names")} - {""}
    assert told == {old for kind in CLASSES.values() for old in kind._old_keywords}


def test_all_old_operations_are_told() -> None:
    old = {
        name: each
        for protocol in protocols()
        for name, each in operations_of(protocol).items()
        if each.is_old
    }
    methods = {row.partition(".")[2] for row in table("Old names")}
    assert set(old) - methods == {"accept"}


def test_the_names_of_the_package() -> None:
    namespace: dict[str, Any] = {}
    exec("from fakebrokers import *", namespace)
    assert {name for name in namespace if not name.startswith("_")} == set(fakebrokers.__all__)
    assert set(fakebrokers.__all__) <= set(dir(fakebrokers))
    assert set(fakebrokers.__all__) == {
        each.server_name for each in protocols() if each.server.startswith("fakebrokers.")
    }
