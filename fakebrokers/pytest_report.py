"""What the report of a failed test says of the fakes that lived in it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from fakebrokers.core.life import all_started
from fakebrokers.pytest_fixtures import lived_in, with_companions
from fakebrokers.pytest_settings import SETTINGS
from fakebrokers.server import FakeServer

if TYPE_CHECKING:
    import pytest

#: Fakes made without a fixture whose journals a report shows, at most; those that started last.
SHOWN = 5


def journals_now() -> WeakKeyDictionary[FakeServer, int]:
    """All fakes that somebody holds, and how far their journals are."""
    return WeakKeyDictionary({each: each.journal.last_seq for each in _servers()})


class Seen(NamedTuple):
    """What a fake saw of a test that has failed.

    Attributes:
        title: That of the fixture, or of the class.
        replay: The command that runs the test again.
        unmet: What was expected and had not happened when the test ended.
        text: All of that with the end of the journal, for people.
    """

    title: str
    server: FakeServer
    replay: str
    unmet: Sequence[str]
    text: str


def journals(
    item: pytest.Item, own: Sequence[tuple[str, FakeServer]], unmet: Mapping[str, Sequence[str]]
) -> list[Seen]:
    """What each fake of a test saw: those of its fixtures, and all others that lived in it.

    Args:
        unmet: What was expected and did not happen, by title.
    """
    settings = item.config.stash[SETTINGS]
    found = []
    for title, server in all_fakes(item, own):
        replay = replay_command(item, (f"--fakebrokers-seed={server.engine.injector.seed}", *settings.replay))
        missed = unmet.get(title, ())
        text = describe(server, settings.journal_lines, replay, missed)
        found.append(Seen(title, server, replay, missed, text))
    return found


def all_fakes(item: pytest.Item, own: Sequence[tuple[str, FakeServer]]) -> list[tuple[str, FakeServer]]:
    """The fakes of a test, with their titles: those of its fixtures, and all others that lived in it."""
    return [*own, *_others(lived_in(item).before, [server for _, server in own])]


def _others(before: Mapping[FakeServer, int], known: Collection[FakeServer]) -> list[tuple[str, FakeServer]]:
    """The fakes in which something has happened and that are none of the known ones, with their titles.

    Args:
        before: What `journals_now` was when the test began.
    """
    names: Counter[str] = Counter()
    found = []
    for each in _servers():
        if each in before and before[each] == each.journal.last_seq:
            continue
        if not each._is_companion and not any(each is one for one in known):
            name = type(each).__name__
            names[name] += 1
            found.append((name if names[name] == 1 else f"{name} ({names[name]})", each))
    return with_companions(found[-SHOWN:])


def _servers() -> list[FakeServer]:
    return [each for each in all_started() if isinstance(each, FakeServer)]


def describe(server: FakeServer, lines: int, replay: str, unmet: Sequence[str]) -> str:
    """Seed, faults with their counts, what was expected, how to run it again, and the end of the journal.

    Args:
        lines: Journal lines, at most.
        replay: The command that runs the test again.
        unmet: What was expected and had not happened when the test ended.
    """
    seed = server.engine.injector.seed
    parts = [f"seed {seed}, profile {server.profile}; again: {replay}"]
    parts += [f"fault {line}" for line in server.faults.counts]
    parts += [f"unmet: {line}" for line in unmet]
    journal = server.journal
    left_out = journal.dropped + max(0, len(journal) - lines)
    if left_out:
        parts.append(f"... {left_out} earlier {'line is' if left_out == 1 else 'lines are'} left out")
    return "\n".join([*parts, journal.excerpt(lines)])


def replay_command(item: pytest.Item, settings: Sequence[str]) -> str:
    """The command that runs this test alone, with the same seed; in a simulation sets of strings matter."""
    command = shlex.join(["pytest", item.nodeid, *settings])
    if "simulation" not in getattr(item, "fixturenames", ()):
        return command
    from fakebrokers.simulation.hashes import VARIABLE, fixed_hash_seed

    fixed = fixed_hash_seed()
    return command if fixed is None else f"{VARIABLE}={fixed} {command}"
