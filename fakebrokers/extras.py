"""What is installed on demand: which extra brings it, and what to type.

`ADDRESS` is the only place that says where pip finds this project. Messages take it from here; documents and
examples are compared with it by ``tests/test_addresses.py``, and ``python -m ci.generate`` writes them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from urllib.parse import unquote, urlsplit

from fakebrokers.errors import UsageError
from fakebrokers.version import __version__

#: Until it is on an index: the file that ``ci/package`` makes. On the day of the release: ``fakebrokers``.
ADDRESS = f"./fakebrokers-{__version__}-py3-none-any.whl"
#: That of the suite, as long as no index knows it; on the day of the release: empty.
SUITE_ADDRESS = f"./fakebrokers_suite-{__version__}-py3-none-any.whl"
#: Extras that bring the suite.
_WITH_SUITE = ("all", "spark", "suite")


def installing(*extras: str, here: bool = False) -> str:
    """The command that installs this project with these extras.

    Args:
        here: On this machine, from where this installation came; else from the address for everybody.
    """
    asked = f"[{','.join(extras)}]" if extras else ""
    address, options, suite = _source() if here else (ADDRESS, [], SUITE_ADDRESS)
    words = [*options, f"fakebrokers{asked} @ {address}" if "://" in address else f"{address}{asked}"]
    if suite and set(extras) & set(_WITH_SUITE):
        words.append(f"fakebrokers-suite @ {suite}" if "://" in suite else suite)
    return shlex.join(["pip", "install", *words])


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Around imports of what an extra brings.

    Args:
        what: What needs it, as the subject of a sentence.

    Raises:
        UsageError: It is not installed; the message says how to get it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "fakebrokers"):
            raise
        raise UsageError(f"{what} needs {package}: {installing(extra, here=True)}") from None


def _source() -> tuple[str, list[str], str]:
    """Where this installation came from (PEP 610), options of pip for it, and where the suite is.

    What came from an index, or is not installed at all, has the address of all.
    """
    try:
        text = distribution("fakebrokers").read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    if text is None:
        return ADDRESS, [], SUITE_ADDRESS
    known = json.loads(text)
    place = known["url"]
    if urlsplit(place).scheme == "file":
        place = unquote(urlsplit(place).path)
    if vcs := known.get("vcs_info"):
        place = f"{vcs['vcs']}+{place}@{vcs['commit_id']}"
        return place, [], f"{place}#subdirectory=conformance"
    if "dir_info" not in known:  # a wheel, beside which there is that of the suite
        return place, [], place.replace("/fakebrokers-", "/fakebrokers_suite-")
    if known["dir_info"].get("editable"):  # has the suite already
        return place, ["-e"], ""
    return place, [], f"{place}/conformance"
