"""The functions that build faults: complete, typed from the same classes, and clear about a wrong word."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from inspect import Parameter, cleandoc, getdoc, signature
from pathlib import Path
from types import FunctionType
from typing import Any, Unpack, get_args, get_type_hints

import msgspec
import pytest

from fakebrokers import faults
from fakebrokers.errors import PlanError
from fakebrokers.faults import Effect, Realism, build, drop, fault, latency
from fakebrokers.faults.effect import Passage
from fakebrokers.faults.effects import Drop
from fakebrokers.faults.making import NamedArgs, builder
from fakebrokers.faults.match import Match
from fakebrokers.faults.plan import Fault
from fakebrokers.faults.registry import COMMON
from fakebrokers.faults.source import function_name
from fakebrokers.protocol import Protocol
from tests.eventually import PATIENCE_S
from tests.faults.builders import SHIPPED, build_module, builders, functions_in, widened

TOP = Path(__file__).parents[2]


class Named(Effect, frozen=True, tag="named"):
    """Has a setting that is called like something of the fault."""

    size: int
    name: str = "x"

    def apply(self, passage: Passage) -> None:
        passage.pass_through()


@builder(Named)
def named(size: int, name: str = "x", **fault: Unpack[NamedArgs]) -> Fault:
    """Not what is shown."""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rol": "confirm"}, r"^drop\.rol: expected one of .*did you mean 'role'\?"),
        ({"role": "confrim"}, r"^fault\.match\.role: expected one of .*did you mean 'confirm'\?"),
        ({"realism": "legl"}, r"^fault\.realism: .*did you mean 'legal'\?"),
        ({"nht": 3}, r"did you mean 'nth'\?"),
        ({"nth": "3"}, r"^fault\.match\.nth: expected a whole number, got '3'"),
    ],
)
def test_a_wrong_word_or_value_is_named_with_the_right_one(options: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        drop(**options)
    with pytest.raises(PlanError, match=message.removeprefix(r"^drop\.rol")):
        fault(Drop(), **options)


def test_settings_by_position_and_by_name() -> None:
    assert latency(0.3, 0.1) == latency(0.3, jitter=0.1) == latency(seconds=0.3, jitter=0.1)
    with pytest.raises(PlanError, match=r"^latency\.seconds: expected one value, got one by position"):
        latency(0.3, seconds=0.2)
    with pytest.raises(PlanError, match="expected at most 0 settings, got 1"):
        drop("confirm")


def test_a_setting_comes_before_a_word_of_the_fault() -> None:
    assert named(name="y", size=1).effects == (Named(name="y", size=1),)
    assert named(1, "y", realism="legal").effective_realism is Realism.LEGAL


def test_each_effect_has_a_function() -> None:
    functions = functions_in(build).keys()
    assert functions == {function_name(effect) for effect in COMMON} | {"fault", "sweep"}
    assert functions <= set(faults.__all__)


@pytest.mark.parametrize("protocol", SHIPPED, ids=lambda each: each.name)
def test_each_effect_of_a_protocol_has_one_too(protocol: Protocol) -> None:
    module = import_module(build_module(protocol))
    assert functions_in(module).keys() == {function_name(effect) for effect in protocol.own_effects}


@pytest.mark.parametrize(
    ("kind", "function"), [pytest.param(kind, each, id=each.__name__) for kind, each in builders()]
)
def test_a_function_takes_what_its_effect_and_the_match_have(
    kind: type[Effect], function: FunctionType
) -> None:
    assert function.__name__ == function_name(kind)
    hints = get_type_hints(function)
    *taken, rest = signature(function).parameters.values()
    assert [(each.name, hints[each.name], shown_default(each)) for each in taken] == [
        (field.name, widened(field.type), settings_default(field)) for field in msgspec.structs.fields(kind)
    ]
    (words,) = get_args(hints[rest.name])
    all_words = {"name": str, "realism": widened(Realism | None)} | {
        field.name: widened(field.type) for field in msgspec.structs.fields(Match)
    }
    assert get_type_hints(words) == {
        name: kept for name, kept in all_words.items() if name not in kind.__struct_fields__
    }


def shown_default(parameter: Parameter) -> Any:
    return msgspec.NODEFAULT if parameter.default is Parameter.empty else parameter.default


def settings_default(field: msgspec.structs.FieldInfo) -> Any:
    """As a signature shows it: no value that could be changed."""
    return ... if field.default_factory is not msgspec.NODEFAULT else field.default


@pytest.mark.parametrize(
    ("kind", "function"), [pytest.param(kind, each, id=each.__name__) for kind, each in builders()]
)
def test_a_function_says_what_its_effect_does(kind: type[Effect], function: FunctionType) -> None:
    """An editor shows what the head says, `help` what the effect's class says."""
    declared = cleandoc(function.__wrapped__.__doc__)  # type: ignore[attr-defined]
    assert cleandoc(kind.__doc__ or "").replace("\n", " ").startswith(declared.replace("\n", " "))
    assert getdoc(function) == getdoc(kind)


CHECKED = """\
from fakebrokers.faults import Effect, drop, fault, fin, inject, latency
from fakebrokers.faults.effects import Drop
from fakebrokers.core.frames import Role
from fakebrokers.blazingmq.build import extra_element
from fakebrokers.moleculer.build import partition_bus
from fakebrokers.narconi.build import http_answer
from fakebrokers.pzq.build import store_failure
from fakebrokers.rabbitmq_stream.build import move_leader

drop(role="confirm", nth=3, realism="legal", where={"code": 1})
drop(role=Role.CONFIRM)
latency(0.3, jitter=0.1, direction="out")
fault(Drop(), latency(1).effects[0], role="ack", name="two")
fin(after_s=1, kind="Publish")
inject("Publish", name="one", after_s=1)
extra_element(name="x", kind="Publish")
partition_bus(["a"], for_s=1, on="idle", after_s=1)
http_answer(500, headers={"a": "b"}, nth=2)
store_failure("full", first=2)
move_leader("orders", node=2, role="publish")
"""

WRONG = {
    'drop(rol="confirm")': 'Unexpected keyword argument "rol" for "drop"; did you mean "role"?',
    'drop(role="confrim")': 'Argument "role" to "drop" has incompatible type',
    "drop(3)": 'Too many positional arguments for "drop"',
    "latency()": 'Missing positional argument "seconds"',
    "latency(0.3, jiter=1)": 'did you mean "jitter"?',
    "fin(after=1)": 'Unexpected keyword argument "after" for "fin"',
    'fin(after_s="1")': 'Argument "after_s" to "fin" has incompatible type',
    "inject(kind=1)": 'Argument "kind" to "inject" has incompatible type',
    'fault(Drop(), rol="ack")': 'Unexpected keyword argument "rol" for "fault"; did you mean "role"?',
    "extra_element(nam=1)": '"nam" for "extra_element"; did you mean "name"?',
    "partition_bus(for_sec=1)": 'Unexpected keyword argument "for_sec" for "partition_bus"',
    "partition_bus(peers=1)": '"peers" for "partition_bus"; did you mean "peer"?',
    "http_answer(500, headers=1)": 'Argument "headers" to "http_answer" has incompatible type',
    "store_failure(reson=1)": 'did you mean "reason"?',
    'move_leader("orders", nod=2)': '"nod" for "move_leader"; did you mean "node"?',
}


@pytest.mark.full
def test_a_type_checker_finds_wrong_words(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="missing: mypy (pip install mypy)")
    (tmp_path / "checked.py").write_text(CHECKED + "\n".join(WRONG) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--follow-imports=silent",
         f"--cache-dir={tmp_path / 'cache'}", "checked.py"],
        cwd=tmp_path, env={"MYPYPATH": str(TOP), "PATH": "/usr/bin"},
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    first = CHECKED.count("\n") + 1
    for number, (line, problem) in enumerate(WRONG.items(), first):
        assert any(f"checked.py:{number}: " in error and problem in error for error in errors), (line, errors)
    assert {int(error.split(":")[1]) for error in errors} == set(range(first, first + len(WRONG)))
