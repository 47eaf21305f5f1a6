"""The functions that build faults: complete, typed from the same classes, and clear about a wrong word."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from fakebrokers import faults
from fakebrokers.errors import PlanError
from fakebrokers.faults import Effect, Realism, build, drop, fault, latency
from fakebrokers.faults.effect import Passage
from fakebrokers.faults.effects import Drop
from fakebrokers.faults.making import builder
from fakebrokers.faults.registry import COMMON
from fakebrokers.faults.source import function_name
from fakebrokers.faults.stubs import build_module, stub_files
from fakebrokers.protocol import Protocol, protocols

TOP = Path(__file__).parents[2]
SHIPPED = [each for each in protocols() if each.server.startswith("fakebrokers.")]


class Named(Effect, frozen=True, tag="named"):
    """Has a setting that is called like something of the fault."""

    size: int
    name: str = "x"

    def apply(self, passage: Passage) -> None:
        passage.pass_through()


def functions_in(module: ModuleType) -> set[str]:
    """What a module builds faults with."""
    found = {name for name, each in vars(module).items() if isinstance(each, FunctionType)}
    return {name for name in found if not name.startswith("__")} - {"builder"}


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
    named = builder(Named)
    assert named(name="y", size=1).effects == (Named(name="y", size=1),)
    assert named(1, "y", realism="legal").effective_realism is Realism.LEGAL


def test_each_effect_has_a_function() -> None:
    functions = functions_in(build)
    assert functions == {function_name(effect) for effect in COMMON} | {"fault", "sweep"}
    assert functions <= set(faults.__all__)


@pytest.mark.parametrize("protocol", SHIPPED, ids=lambda each: each.name)
def test_each_effect_of_a_protocol_has_one_too(protocol: Protocol) -> None:
    module = import_module(build_module(protocol))
    assert functions_in(module) == {function_name(effect) for effect in protocol.own_effects}


def test_the_stubs_are_up_to_date() -> None:
    old = {path: path.read_text(encoding="utf-8") for path in stub_files()}
    assert old == stub_files(), "run python -m fakebrokers.faults.stubs"
    assert len(old) == 1 + len(SHIPPED)


CHECKED = """\
from fakebrokers.faults import Effect, drop, fault, latency
from fakebrokers.faults.effects import Drop
from fakebrokers.core.frames import Role
from fakebrokers.rabbitmq_stream.build import move_leader

drop(role="confirm", nth=3, realism="legal", where={"code": 1})
drop(role=Role.CONFIRM)
latency(0.3, jitter=0.1, direction="out")
move_leader("orders", node=2, role="publish")
fault(Drop(), latency(1).effects[0], role="ack", name="two")
"""

WRONG = {
    'drop(rol="confirm")': 'Unexpected keyword argument "rol" for "drop"; did you mean "role"?',
    'drop(role="confrim")': 'Argument "role" to "drop" has incompatible type',
    "drop(3)": 'Too many positional arguments for "drop"',
    "latency()": 'Missing positional argument "seconds"',
    "latency(0.3, jiter=1)": 'did you mean "jitter"?',
    'move_leader("orders", nod=2)': '"nod" for "move_leader"; did you mean "node"?',
    'fault(Drop(), rol="ack")': 'Unexpected keyword argument "rol" for "fault"; did you mean "role"?',
}


def test_a_type_checker_finds_wrong_words(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="missing: mypy (pip install mypy)")
    (tmp_path / "checked.py").write_text(CHECKED + "\n".join(WRONG) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--follow-imports=silent",
         f"--cache-dir={tmp_path / 'cache'}", "checked.py"],
        cwd=tmp_path, env={"MYPYPATH": str(TOP), "PATH": "/usr/bin"},
        capture_output=True, text=True, timeout=55, check=False,
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    first = CHECKED.count("\n") + 1
    for number, (line, problem) in enumerate(WRONG.items(), first):
        assert any(f"checked.py:{number}: " in error and problem in error for error in errors), (line, errors)
    assert {int(error.split(":")[1]) for error in errors} == set(range(first, first + len(WRONG)))
