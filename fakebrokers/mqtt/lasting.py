"""Random sequences in which clients come back: what was remembered, what waited, and QoS 2 cut short."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from fakebrokers.core.dialect import MARK, Command, Login, segments
from fakebrokers.core.frames import Frame, kind_of
from fakebrokers.mqtt import frames as f
from fakebrokers.mqtt.codec import MqttCodec

TOPICS = [f"{MARK}/{rest}" for rest in ("a", "b", "a/b", "c/a/b")]
#: Such that no filter with a wildcard in front fits.
HIDDEN = f"${MARK}"
FILTERS = [*TOPICS, *[f"{MARK}/{rest}" for rest in ("+", "#", "+/b", "a/#", "+/+", "c/+/b")]]
FILTERS += [
    HIDDEN,
    f"{HIDDEN}/#",
    f"+/{MARK}",
    f"$share/g/{MARK}/a",
    f"$share/g/{MARK}/+",
    f"$share/h/{MARK}/a",
]
#: The only one on which messages are kept: how a server orders several is its own affair.
RETAINED = TOPICS[0]
#: Packet ids of the clients' own messages.
OWN_IDS = 4


class Person:
    """One client id.

    Attributes:
        line: Its connection's number; None while it has none.
        qos: Of all its filters, so that it does not matter which of them a message goes by.
    """

    def __init__(self, number: int, random: Random) -> None:
        self.id = f"{MARK}{number}"
        self.line: int | None = None
        self.qos = random.choice([0, 1, 1, 2, 2])
        self.level = 3 if random.random() < 0.05 else 4


class Story:
    """A sequence as it is made.

    Args:
        login: What clients show.
    """

    def __init__(self, random: Random, login: Login) -> None:
        self.random = random
        self.commands: list[Command] = []
        self._login = login
        self._lines = 0
        self._messages = 0
        self._people = [Person(number, random) for number in range(random.randint(2, 3))]

    def go_on(self) -> None:
        """One person does something; one that has no connection comes back first."""
        person = self.random.choice(self._people)
        if person.line is None:
            self.connect(person)
            return
        act = self.random.choices(list(_ACTS), weights=list(_ACTS.values()))[0]
        act(self, person)

    def connect(self, person: Person) -> None:
        """On a connection of its own; where there is another one, that is taken over."""
        random, login = self.random, self._login
        person.line, self._lines = self._lines, self._lines + 1
        will = None
        if random.random() < 0.25:
            will = f.Will(random.choice(TOPICS), b"will", random.randrange(3))
        frame = f.Connect(
            person.id,
            random.choice([0, 60]),
            random.random() < 0.2,
            will,
            login.user or None,
            login.password.encode() if login.password else None,
            "MQTT" if person.level == 4 else "MQIsdp",
            person.level,
        )
        clean = "clean" if frame.clean else "lasting"
        self._say(person, frame, f"connect {person.id} {clean}{f' with {will}' if will else ''}")

    def subscribe(self, person: Person) -> None:
        filters = [(self.random.choice(FILTERS), person.qos) for _ in range(self.random.choice([1, 1, 2]))]
        frame = f.Subscribe(self.random.randint(1, 9), tuple(filters))
        self._say(person, frame, f"subscribe {filters}")

    def unsubscribe(self, person: Person) -> None:
        frame = f.Unsubscribe(self.random.randint(1, 9), (self.random.choice(FILTERS),))
        self._say(person, frame, f"unsubscribe {frame.filters}")

    def publish(self, person: Person) -> None:
        random = self.random
        self._messages += 1
        qos, topic = random.choice([0, 1, 1, 2, 2]), random.choice([*TOPICS, *TOPICS, HIDDEN, f"$SYS/{MARK}"])
        number = random.randint(1, OWN_IDS) if qos else 0
        retain = topic == RETAINED and random.random() < 0.2
        body = b"" if retain and random.random() < 0.3 else b"m%d" % self._messages
        frame = f.Publish(topic, body, qos, number, retain, bool(qos) and random.random() < 0.1)
        text = f"publish {topic} {body!r} QoS {qos} id {number}{' retain' if retain else ''}"
        self._say(person, frame, f"{text}{' dup' if frame.dup else ''}")

    def release(self, person: Person) -> None:
        number = self.random.randint(1, OWN_IDS)
        self._say(person, f.Pubrel(number), f"pubrel {number}")

    def acknowledge(self, person: Person) -> None:
        """Mostly as the QoS demands it, with an id that the server may have used by now."""
        random = self.random
        number = random.randint(1, 2 + self._messages)
        kinds = [f.Puback, f.Pubrec, f.Pubcomp]
        usual = {1: kinds[:1], 2: [f.Pubrec, *kinds[1:]]}.get(person.qos, kinds)
        kind: Callable[[int], Frame] = random.choice(kinds if random.random() < 0.1 else usual)
        frame = kind(number)
        self._say(person, frame, f"{kind_of(frame).lower()} {number}")

    def disconnect(self, person: Person) -> None:
        self._say(person, f.Disconnect(), "disconnect")
        person.line = None

    def leave(self, person: Person) -> None:
        assert person.line is not None
        self.commands.append(Command(person.line, None, "leaves"))
        person.line = None

    def _say(self, person: Person, frame: Frame, text: str) -> None:
        assert person.line is not None
        self.commands.append(Command(person.line, MqttCodec().encode(frame), text))


_ACTS: Mapping[Callable[[Story, Person], None], int] = {
    Story.subscribe: 14,
    Story.unsubscribe: 3,
    Story.publish: 30,
    Story.release: 10,
    Story.acknowledge: 16,
    Story.connect: 4,
    Story.disconnect: 4,
    Story.leave: 9,
}


def lasting_sequence(random: Random, login: Login) -> list[Command]:
    """What a few clients do that are remembered while they are gone."""
    story = Story(random, login)
    for _ in range(random.randint(10, 40)):
        story.go_on()
    return segments(random, story.commands)
