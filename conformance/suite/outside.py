"""Folders of scenarios from outside: a team's own catalogue, scripts and mutants.

    acme/
        catalogue/acme.toml              requirements of a family of its own, ACME
        orders.py                        scripts; what begins with an underscore is for their helpers
        mutants/<protocol>/*.py          mutants of the reference client of that protocol

A folder is a package below `scenarios` (``scenarios.acme``), so its modules import each other as
``from ._steps import ...``, and reports, expectations and reproducers treat them like those that come along.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

from fakebrokers.commands import own_package
from fakebrokers.errors import UsageError

#: Names the folders to the child processes of a run, as PATH does.
VARIABLE = "FAKEBROKERS_SCENARIOS"
CATALOGUE, MUTANTS = "catalogue", "mutants"
_NO_SCRIPTS = re.compile(r"[_.].*|test_.*|.*_test\.py|conftest\.py")


class Folder(NamedTuple):
    """A folder in use.

    Attributes:
        path: Absolute.
        package: Its name for Python, such as ``scenarios.acme``.
    """

    path: Path
    package: str

    def holds(self, module: str) -> bool:
        """Whether a module, by its name, lies in it."""
        return module.startswith(f"{self.package}.")


_folders: list[Folder] = []


def folders() -> tuple[Folder, ...]:
    """The folders in use, in the order in which they came."""
    return tuple(_folders)


def folder_of(module: str) -> Folder | None:
    """The folder in which a module lies, by its name."""
    return next((folder for folder in _folders if folder.holds(module)), None)


def is_bundled(module: str) -> bool:
    """Whether a module, by its name, is one of the scenarios that come along."""
    return module.startswith("scenarios.") and folder_of(module) is None


def use(path: str | Path) -> Folder:
    """Add a folder; harmless if it is there. Nothing of it is loaded before it is asked for.

    Raises:
        UsageError: It is no folder, or has no catalogue.
    """
    place = Path(path).resolve()
    for folder in _folders:
        if folder.path == place:
            return folder
    if not place.is_dir():
        raise UsageError(f"{path}: expected a folder of scenarios, and there is none")
    if not list((place / CATALOGUE).glob("*.toml")):
        raise UsageError(f"{path}: expected {CATALOGUE}/*.toml in it, which lists its scenarios; found none")
    folder = Folder(place, _free_name(place))
    _folders.append(folder)
    return folder


def forget(folder: Folder) -> None:
    """Take a folder out again, and what was loaded of it."""
    _folders.remove(folder)
    for name in [name for name in sys.modules if name == folder.package or folder.holds(name)]:
        del sys.modules[name]


def environment() -> dict[str, str]:
    """What child processes need in their environment to know the same folders."""
    return {VARIABLE: os.pathsep.join(str(folder.path) for folder in _folders)} if _folders else {}


def load_scripts(folder: Folder) -> None:
    """Import its scripts. `UsageError` with file and line for what is wrong in one of them."""
    for path in _modules(folder.path):
        _load(folder, path)


def load_mutants(folder: Folder, protocol: str) -> None:
    """Import its mutants for a protocol. `UsageError` with file and line as above."""
    for path in sorted((folder.path / MUTANTS / protocol.replace("-", "_")).glob("[!_.]*.py")):
        _load(folder, path)


def _free_name(place: Path) -> str:
    """A name for the package, unlike all others below `scenarios`."""
    word = re.sub(r"\W", "_", place.name).lower()
    word = word if word.isidentifier() else f"_{word}"
    taken = {folder.package for folder in _folders}
    ours = own_package("scenarios").__path__
    name, number = f"scenarios.{word}", 1
    while name in taken or PathFinder.find_spec(name, ours) is not None:
        number += 1
        name = f"scenarios.{word}_{number}"
    return name


def _modules(place: Path) -> Iterator[Path]:
    """The files with scripts, here and further down."""
    for path in sorted(place.iterdir()):
        if _NO_SCRIPTS.fullmatch(path.name):
            continue
        if path.is_dir() and path.name not in (CATALOGUE, MUTANTS):
            yield from _modules(path)
        elif path.suffix == ".py":
            yield path


def _load(folder: Folder, path: Path) -> None:
    try:
        _load_package(folder)
        parts = path.relative_to(folder.path).with_suffix("").parts
        import_module(".".join([folder.package, *parts]))
    except SyntaxError as error:
        raise UsageError(f"{error.filename}:{error.lineno}: expected Python, {error.msg}") from None
    except Exception as error:
        raise UsageError(f"{_place(error, folder, path)}: {_problem(error, folder)}") from error


def _load_package(folder: Folder) -> None:
    if folder.package in sys.modules:
        return
    init = folder.path / "__init__.py"
    spec: ModuleSpec | None = ModuleSpec(folder.package, None, is_package=True)
    if init.is_file():
        spec = spec_from_file_location(folder.package, init, submodule_search_locations=[str(folder.path)])
    assert spec is not None
    spec.submodule_search_locations = [str(folder.path)]
    module = sys.modules[folder.package] = module_from_spec(spec)
    if spec.loader is not None:
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[folder.package]
            raise
    setattr(own_package("scenarios"), folder.package.rpartition(".")[2], module)


def _place(error: Exception, folder: Folder, path: Path) -> str:
    """File and line of the folder's own code that did it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder.path)]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else str(path)


def _problem(error: Exception, folder: Folder) -> str:
    if isinstance(error, UsageError):
        return str(error)
    advice = ""
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        name = error.name.partition(".")[0]
        if (folder.path / f"{name}.py").exists() or (folder.path / name).is_dir():
            advice = f"; it is in this folder: write `from .{name} import ...`"
    return f"{type(error).__name__}: {error}{advice}"


for _path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
    use(_path)
