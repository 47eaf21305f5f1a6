"""Folders of scenarios from outside: what is loaded, and what is refused, with file and line."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.clients.mutants.registry import find_mutant
from conformance.suite import outside
from conformance.suite.catalogue import families, sources
from conformance.suite.declared import declared_by
from conformance.suite.load import add_folder, all_scenarios, remove_folder, requirement, select
from fakebrokers.errors import UsageError
from tests.eventually import PATIENCE_S

CATALOGUE = """\
family = "ACME"
title = "House rules"
protocol = "rabbitmq-stream"

[basis]
A1 = "a rule of the house"

[[sections]]
id = "ACME-1"
title = "Orders"

[[scenarios]]
id = "ACME-1.01"
title = "One"
level = "MUST"
severity = "high"
basis = ["A1", "R7"]
fault = "None"
passes = "It works"
"""
SCRIPT = """\
from conformance.suite import scenario
from ._words import CRITERION


@scenario("ACME-1.01", roles=["publisher"])
async def one(broker, client, expect):
    expect.that(True, CRITERION, id="all-is-well")
"""
MUTANT = """\
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher


@mutant("acme-worst", breaks=["A1"], tag="data")
class Worst(Publisher):
    "The worst."
"""
FILES = {
    "catalogue/acme.toml": CATALOGUE,
    "deeper/orders.py": SCRIPT.replace("._words", ".._words"),
    "_words.py": 'CRITERION = "all is well"\n',
    "mutants/rabbitmq_stream/orders.py": MUTANT,
    "test_ours.py": "raise RuntimeError('a test, no scenario')\n",
}


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    for folder in outside.folders():
        remove_folder(folder)


def written(place: Path, **changed: str) -> Path:
    """A folder with the files above; `changed` by the last part of a name, without its ending."""
    for name, text in FILES.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(changed.get(path.stem, text))
    return place


def test_a_folder_is_loaded_like_what_comes_along(tmp_path: Path) -> None:
    before = all_scenarios()
    folder = add_folder(written(tmp_path / "acme-rules"))
    assert add_folder(tmp_path / "acme-rules") == folder
    assert folder.package == "scenarios.acme_rules"
    [item] = [one for one in all_scenarios() if one not in before]
    assert item.key == ("ACME-1.01", "rabbitmq-stream", "")
    assert select(all_scenarios(), ids=["acme-1"]) == [item]
    assert [text.partition(":")[0] for text in sources(requirement("ACME-1.01"))] == ["A1", "R7"]
    assert "all-is-well" in declared_by(item).ids
    assert find_mutant("rabbitmq-stream", "acme-worst").title == "The worst."


def test_a_folder_may_be_taken_out_again(tmp_path: Path) -> None:
    before = all_scenarios()
    remove_folder(add_folder(written(tmp_path / "acme")))
    assert all_scenarios() == before and "ACME" not in families()


def test_folders_of_one_name_do_not_meet(tmp_path: Path) -> None:
    names = []
    for number, family in enumerate(("ACME", "ZETA")):
        catalogue = CATALOGUE.replace("ACME", family).replace("A1", f"{family[0]}1")
        orders = FILES["deeper/orders.py"].replace("ACME", family)
        place = written(tmp_path / str(number) / "scenarios", acme=catalogue, orders=orders)
        names.append(add_folder(place).package)
    assert names == ["scenarios.scenarios", "scenarios.scenarios_2"]
    assert len(select(all_scenarios(), ids=["ACME", "ZETA"])) == 2


def test_no_folder_takes_the_name_of_what_comes_along(tmp_path: Path) -> None:
    assert add_folder(written(tmp_path / "pzq")).package == "scenarios.pzq_2"


def test_its_own_init_is_run(tmp_path: Path) -> None:
    place = written(tmp_path / "acme", orders=FILES["deeper/orders.py"].replace("_words", ""))
    (place / "__init__.py").write_text('CRITERION = "from the package"\n')
    add_folder(place)
    [item] = select(all_scenarios(), ids=["ACME"])
    assert item.script.__globals__["CRITERION"] == "from the package"


BROKEN = [
    ("acme", 'level = "MUST"', 'level = "HIGH"', 15, "expected the level MUST, SHOULD or MAY"),
    ("acme", 'title = "One"', 'titel = "One"', 14, "did you mean 'title'"),
    ("acme", 'title = "One"\n', "", 12, "missing required field `title`"),
    ("acme", '"House rules"', "3", 2, "Expected `str`, got `int`"),
    ("acme", '"ACME"', '"acme"', 1, "in capital letters"),
    ("acme", '"ACME"', '"RMQS"', 1, "RMQS is there already"),
    ("acme", '"rabbitmq-stream"', '"rabbitmq"', 3, "there is no protocol 'rabbitmq'"),
    ("acme", "A1 =", "R7 =", 6, "R7 is there already, in RMQS"),
    ("acme", 'id = "ACME-1"\n', 'id = "1"\n', 9, "expected a section such as ACME-1"),
    ("acme", '"ACME-1.01"', '"RMQS-3.06"', 13, "expected an id such as ACME-1.01, got 'RMQS-3.06'"),
    ("acme", '"ACME-1.01"', '"ACME-2.01"', 13, "expected a section of this family (ACME-1)"),
    ("acme", '"high"', '"urgent"', 16, "expected one of critical, high, medium, low"),
    ("acme", '["A1", "R7"]', '["A2"]', 17, "there is no sentence 'A2'"),
    ("acme", 'passes = "It works"\n', "passes =\n", 19, "expected TOML"),
    ("orders", "ACME-1.01", "ACME-1.02", 5, "did you mean 'ACME-1.01'?"),
    ("orders", "ACME-1.01", "RMQS-3.06", 5, "two scripts for RMQS-3.06: the other one is in "),
    ("orders", "async def", "async deaf", 6, "expected Python"),
    ("orders", ".._words", "_words", 2, "write `from ._words import ...`"),
    ("_words", '"all is well"', "1 / 0", 1, "ZeroDivisionError"),
]


@pytest.mark.parametrize(("file", "old", "new", "line", "problem"), BROKEN, ids=lambda value: str(value)[:20])
def test_mistakes_are_told_with_file_and_line(
    tmp_path: Path, file: str, old: str, new: str, line: int, problem: str
) -> None:
    before = all_scenarios()
    [name] = [name for name in FILES if Path(name).stem == file and not name.startswith("mutants")]
    text = FILES[name]
    assert old in text
    place = written(tmp_path / "acme", **{file: text.replace(old, new)})
    with pytest.raises(UsageError, match=f"^{re.escape(str(place / name))}:{line}: .*{re.escape(problem)}"):
        add_folder(place)
    assert all_scenarios() == before and outside.folders() == ()


def test_requirements_and_scripts_belong_together(tmp_path: Path) -> None:
    more = CATALOGUE + CATALOGUE.partition("\n\n[[scenarios]]")[2].join(("\n[[scenarios]]", ""))
    place = written(tmp_path / "one", acme=more.replace("ACME-1.01", "ACME-1.02", 1))
    with pytest.raises(UsageError, match=r"acme.toml:13: expected a script @scenario\(\"ACME-1.02\"\) in "):
        add_folder(place)
    with pytest.raises(UsageError, match=r"acme.toml:22: expected each id once, and ACME-1.01 comes again"):
        add_folder(written(tmp_path / "two", acme=more))
    unwritten = SCRIPT.replace("ACME-1.01", "NET-1.01").replace("roles", 'protocol="echo", roles')
    place = written(tmp_path / "three")
    (place / "more.py").write_text(unwritten)
    with pytest.raises(UsageError, match=r"more.py:5: expected a scenario of this folder's catalogue"):
        add_folder(place)


STATED = '''\
from conformance.suite import scenario


@scenario("ACME-1.01", "MUST", "high", basis=["A1", "R7"], roles=["publisher"])
async def one(broker, client, expect):
    """One.

    Fault: None
    Pass: It works
    """
    expect.that(True, "all is well", id="all-is-well")
'''
WITHOUT = CATALOGUE.partition("\n[[scenarios]]")[0]


def test_a_script_may_state_its_requirement(tmp_path: Path) -> None:
    add_folder(written(tmp_path / "listed"))
    listed = requirement("ACME-1.01")
    remove_folder(outside.folders()[0])
    folder = add_folder(written(tmp_path / "acme", acme=WITHOUT, orders=STATED))
    assert requirement("ACME-1.01") == listed
    [item] = select(all_scenarios(), ids=["ACME"])
    assert item.requirement == listed and "all-is-well" in declared_by(item).ids
    remove_folder(folder)
    with pytest.raises(UsageError, match=r"there is no scenario 'ACME-1\.01'"):
        requirement("ACME-1.01")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"MUST"', '"HIGH"', "ACME-1.01: expected the level MUST, SHOULD, MAY, got 'HIGH'"),
        ('"high"', '"urgent"', "ACME-1.01: expected one of critical, high, medium, low, got 'urgent'"),
        ('"A1"', '"A2"', "ACME-1.01: there is no sentence 'A2'"),
        ("ACME-1.01", "ACME-2.01", "ACME-2.01: expected a section of this family (ACME-1), got ACME-2"),
        ("ACME-1.01", "OTHER-2.01", "OTHER-2.01: there is no family 'OTHER'"),
        ("Fault: None", "None", "expected a docstring of a title"),
    ],
)
def test_mistakes_in_what_a_script_states_are_reported_with_its_line(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    place = written(tmp_path / "acme", acme=WITHOUT, orders=STATED.replace(old, new))
    with pytest.raises(UsageError, match=rf"orders.py:4: .*{re.escape(problem)}"):
        add_folder(place)


def test_a_family_without_requirements_is_refused(tmp_path: Path) -> None:
    place = written(tmp_path / "acme", acme=WITHOUT)
    (place / "deeper/orders.py").unlink()
    with pytest.raises(
        UsageError, match=r"acme\.toml:1: expected at least one \[\[scenarios\]\], or a script"
    ):
        add_folder(place)


def test_mutants_with_mistakes_are_told_too(tmp_path: Path) -> None:
    place = tmp_path / "acme"
    path = written(place) / "mutants/rabbitmq_stream/orders.py"
    path.write_text(MUTANT.replace('"The worst."', "pass"))
    add_folder(place)
    with pytest.raises(UsageError, match=r"orders.py:5: the mutant acme-worst needs a docstring"):
        find_mutant("rabbitmq-stream", "acme-worst")


def test_what_is_no_folder_of_scenarios(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a folder of scenarios, and there is none"):
        add_folder(tmp_path / "acme")
    (tmp_path / "acme").mkdir()
    with pytest.raises(UsageError, match=r"expected catalogue/.* which lists its scenarios; found none"):
        add_folder(tmp_path / "acme")


def test_child_processes_know_the_folders(tmp_path: Path) -> None:
    assert outside.environment() == {}
    add_folder(written(tmp_path / "acme"))
    find = "from conformance.clients.mutants.registry import find_mutant"
    code = f"{find}; find_mutant('rabbitmq-stream', 'acme-worst')"
    env = {"PYTHONPATH": str(Path(__file__).parents[3]), **outside.environment()}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=PATIENCE_S)
