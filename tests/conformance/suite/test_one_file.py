"""Several modules become one that does the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.suite.one_file import OneFile
from fakebrokers.errors import UsageError


def flattened(folder: Path, modules: dict[str, str], root: str, **options: Any) -> tuple[str, dict[str, Any]]:
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    sources = {name: folder / f"{name}.py" for name in modules}
    text = OneFile(set(), sources=sources, **options).flatten(root)
    names: dict[str, Any] = {"__name__": "flat"}
    exec(compile(text, "flat", "exec"), names)
    return text, names


def test_what_is_needed_comes_along_and_nothing_else(tmp_path: Path) -> None:
    helper = (
        "import json\nLIMIT = 2\n"
        "def used(x: int) -> int:\n    return x * LIMIT\n"
        "def unused():\n    return json\n"
    )
    text, names = flattened(tmp_path, {"a_helper": helper}, "from a_helper import used\nanswer = used(21)\n")
    assert names["answer"] == 42
    assert "unused" not in text
    assert "json" not in text
    assert "a_helper" not in text


def test_equal_names_of_two_modules_stay_two_things(tmp_path: Path) -> None:
    modules = {
        "one_side": "def name():\n    return 'one'\n"
        "def one(name=None):\n    return name or 'local'\n"
        "def first():\n    return name() + one()\n",
        "other_side": "from math import floor as name\nLIST = [name for name in (1, 2)]\ndef second():\n"
        "    return name(2.5), LIST\n",
    }
    root = "from one_side import first\nfrom other_side import second\nfound = first(), second()\n"
    _, names = flattened(tmp_path, modules, root)
    assert names["found"] == ("onelocal", (2, [1, 2]))


def test_what_runs_on_loading_stands_behind_what_it_needs(tmp_path: Path) -> None:
    module = (
        "def double(x):\n    return _times(x, 2)\ndef _times(x, y):\n    return x * y\n"
        "class Base:\n    def kept(self):\n        return 1\n    def dropped(self):\n        return 2\n"
        "class Child(Base):\n    size = double(3)\n"
    )
    text, names = flattened(
        tmp_path, {"classes": module}, "from classes import Child\nc = Child()\nr = c.kept()\n"
    )
    assert (names["c"].size, names["r"]) == (6, 1)
    assert "dropped" not in text


def test_modules_that_are_used_by_their_name(tmp_path: Path) -> None:
    modules = {
        "tools": "def act():\n    return 'done'\n",
        "user": "import tools\ndef work():\n    return tools.act()\n",
    }
    _, names = flattened(tmp_path, modules, "from user import work\ndone = work()\n")
    assert names["done"] == "done"
    with pytest.raises(UsageError, match="used as a value"):
        other = {**modules, "other_user": "import tools\ndef work():\n    return dir(tools)\n"}
        flattened(tmp_path, other, "from other_user import work\ndone = work()\n")


def test_a_module_that_needs_files_beside_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="files beside it"):
        flattened(
            tmp_path, {"page": "def here():\n    return __file__\n"}, "from page import here\nx = here()\n"
        )


def test_marked_methods_are_kept_for_their_mark(tmp_path: Path) -> None:
    module = (
        "def op(name):\n    return lambda method: method\n"
        "class Adapter:\n"
        "    @op('rmqs.create')\n    def create(self):\n        return 1\n"
        "    @op('rmqs.delete')\n    def delete(self):\n        return 2\n"
    )
    text, names = flattened(
        tmp_path, {"calls": module}, "from calls import Adapter\na = Adapter()\n", ops=["rmqs.create"]
    )
    assert names["a"].create() == 1
    assert "delete" not in text
