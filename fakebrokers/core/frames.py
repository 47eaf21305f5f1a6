"""What the frames of all protocols have in common: a kind, a role, items and a correlation key.

Each protocol's own ``frames.py`` declares one `Frame` class per frame; what faults, journal and checkers
need to know of it stands on the class::

    class Ack(Frame, frozen=True):
        spec = FrameSpec(Role.CONFIRM, key="guids", keys=KeyType.BYTES16, items=AckedItems())

They read nothing else, so they serve every protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec


class Role(StrEnum):
    """What a frame is for, in words that hold across protocols.

    Beware of protocols that call `CONFIRM` (broker to producer) an ACK, and `ACK` a confirm.
    """

    HANDSHAKE = "handshake"  #: connection set-up: negotiation, authentication, tuning
    OPEN = "open"  #: declares a publisher, queue, subscription
    SHUT = "shut"  #: the counterpart of open
    PUBLISH = "publish"  #: producer to broker
    CONFIRM = "confirm"  #: broker to producer: stored
    REJECT = "reject"  #: broker to producer: not stored
    DELIVER = "deliver"  #: broker to consumer
    ACK = "ack"  #: consumer to broker: processed (or not)
    FLOW = "flow"  #: credit, limits, pause and resume
    HEARTBEAT = "heartbeat"  #: sign of life
    CLOSE = "close"  #: orderly end of the connection, and its answer
    REQUEST = "request"  #: any other question of the client
    RESPONSE = "response"  #: the answer to a request
    EVENT = "event"  #: news that the broker sends unasked
    DATA = "data"  #: bytes of a stream whose frames nobody looks at
    MALFORMED = "malformed"  #: bytes that are no frame


#: Where frames of a role go, whatever the protocol; of others that depends.
WAYS: Mapping[Role, str] = {
    Role.PUBLISH: "in",
    Role.CONFIRM: "out",
    Role.REJECT: "out",
    Role.DELIVER: "out",
    Role.ACK: "in",
}


class KeyType(StrEnum):
    """What the correlation keys of a frame are, from the frame to the analysis."""

    U64 = "u64"  #: unsigned numbers of 64 bits; a batch may hold them packed, big-endian
    BYTES16 = "bytes16"  #: 16 bytes such as a GUID; a batch may hold them packed
    BYTES = "bytes"  #: any bytes
    TEXT = "text"
    TUPLE = "tuple"  #: several of the above together, such as (node, request id)

    @property
    def width(self) -> int:
        """Bytes of one key in a batch that holds them packed; 0 where they cannot be packed."""
        return {KeyType.U64: 8, KeyType.BYTES16: 16}.get(self, 0)


def unpack_keys(packed: bytes, keys: KeyType) -> list[Any]:
    """The keys of a batch that holds them packed; a rest that is no whole key is left out."""
    width = keys.width
    pieces = [packed[at : at + width] for at in range(0, len(packed) - width + 1, width)]
    return [int.from_bytes(piece, "big") for piece in pieces] if keys is KeyType.U64 else list(pieces)


class Items:
    """How to look into a frame that carries several messages (``unit = "item"``).

    Attributes:
        mixed: Whether the items of one frame may differ in role, status or scope. Only then are `role`,
            `status` and `scope` asked; else the frame's own hold for all of them.
        roles: With `mixed`: the roles that items may have besides the frame's own.
    """

    mixed: ClassVar[bool] = False
    roles: ClassVar[tuple[Role, ...]] = ()

    def count(self, frame: Any) -> int:
        """How many items the frame carries."""
        raise NotImplementedError

    def keys(self, frame: Any) -> Sequence[Any]:
        """The correlation key of each item, in order (publishing id, GUID ...)."""
        raise NotImplementedError

    def select(self, frame: Any, indices: Sequence[int]) -> Any:
        """A copy of the frame with only these items, in this order."""
        raise NotImplementedError

    def covers(self, frame: Any) -> range:
        """The keys that other frames may name its messages by, where these are consecutive numbers and an
        item may hold several messages: more than `keys`. Else an empty range."""
        return range(0)

    def bodies(self, frame: Any) -> Iterable[bytes]:
        """The body of each message, in order, as far as it can be read; for people."""
        return ()

    def role(self, frame: Any, index: int) -> Role | None:
        """Role of one item; None: the frame's."""
        return None

    def status(self, frame: Any, index: int) -> int | None:
        """The wire's result code of one item."""
        return None

    def scope(self, frame: Any, index: int) -> Any:
        """The scope in which the key of one item counts."""
        return None


class Inside(Protocol):
    """How to look into a frame that carries a frame of another protocol (a packet in a bus message)."""

    def kinds(self) -> Iterable[type[Frame]]:
        """The frames that may be inside."""

    def open(self, envelope: Any) -> Frame | None:
        """The frame inside; None if there is none that can be read."""

    def wrap(self, envelope: Any, inner: Frame) -> Frame:
        """The envelope with another frame inside."""


#: Of SASL: what a field that names one may show.
MECHANISMS = frozenset(
    {"PLAIN", "AMQPLAIN", "EXTERNAL", "ANONYMOUS", "LOGIN", "RABBIT-CR-DEMO", "CRAM-MD5", "DIGEST-MD5"}
    | {"GSSAPI", "NTLM", "OAUTHBEARER", "XOAUTH2"}
    | {f"SCRAM-SHA-{bits}{plus}" for bits in (1, 256, 512) for plus in ("", "-PLUS")}
)


class FrameSpec(NamedTuple):
    """What faults, journal and checkers need to know of a frame.

    Attributes:
        role: See `Role`; by direction (``{"in": ..., "out": ...}``) where it depends on that.
        key: Name of the field that ties a question to its answer, or a message to its confirm.
        keys: What such keys are.
        items: For frames that are batches; None where a frame is one item.
        status: Name of the field that holds the wire's result code, if there is one.
        secret: Names of the fields that carry credentials; never written to a journal.
        bulk: Names of the fields that hold message bodies; left out of the journal when large.
        scope: Name of the field in whose scope the key counts (a publisher's id), if that is not the
            whole connection.
        inside: For frames that carry a frame of another protocol.
        named: Names of the fields that hold values by name (headers, properties, a URL with its query, the
            words of a command); those of them that are credentials are never written to a journal.
        words: Names of the fields that hold one of a few words, and these, in capitals; any other text may be
            a credential in the wrong place, and is never written to a journal.
    """

    role: Role | Mapping[str, Role]
    key: str | None = None
    items: Items | None = None
    status: str | None = None
    secret: tuple[str, ...] = ()
    bulk: tuple[str, ...] = ()
    scope: str | None = None
    keys: KeyType = KeyType.U64
    inside: Inside | None = None
    named: tuple[str, ...] = ()
    words: Mapping[str, frozenset[str]] = {}

    @property
    def has_secrets(self) -> bool:
        """Whether there is anything in it that may be a credential."""
        return bool(self.secret or self.named or self.words)

    def role_in(self, direction: str) -> Role:
        """The frame's role in one direction, ``in`` or ``out``."""
        return self.role if isinstance(self.role, Role) else self.role[direction]

    def roles_in(self, direction: str) -> frozenset[Role]:
        """The roles that the frame, or one of its items, may have in a direction ("": in any)."""
        if isinstance(self.role, Role):
            found = {self.role}
        else:
            found = {role for way, role in self.role.items() if direction in ("", way)}
        return frozenset(found if self.items is None else found.union(self.items.roles))


class Part(NamedTuple):
    """Items of one frame that share role, status and scope; `indices` None means all of them."""

    role: Role
    status: int | None
    scope: Any
    indices: tuple[int, ...] | None


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One delimited unit on the wire, as a value.

    Attributes:
        spec: What faults, journal and checkers need to know of it.
        kind: The protocol's name of it; that of the class unless the class says otherwise.
        way: The only direction in which it goes, ``in`` or ``out``; "" where its role says it, or both are
            possible.
        code_names: What the numbers of its result code are called, where a document names them; for people.
        says: Names of the fields that tell people what it is about, where those are not the bodies of
            messages (`FrameSpec.bulk`).
    """

    spec: ClassVar[FrameSpec]
    kind: ClassVar[str] = ""
    way: ClassVar[str] = ""
    code_names: ClassVar[Mapping[int, str]] = {}
    says: ClassVar[tuple[str, ...]] = ()

    def code_name(self, code: int) -> str:
        """What a result code of this frame is called; "" where nobody has named it."""
        return self.code_names.get(code, "")

    @classmethod
    def roles_in(cls, direction: str) -> frozenset[Role]:
        """The roles that it, or one of its items, can have where it really goes ("": in any direction)."""
        if direction and cls.way not in ("", direction):
            return frozenset()
        roles = cls.spec.roles_in(direction)
        return frozenset([role for role in roles if not direction or WAYS.get(role, direction) == direction])


class Malformed(Frame, frozen=True, gc=False):
    """Bytes that are no frame.

    Attributes:
        data: The bytes, at most the first 256.
        problem: What was expected, what came, and where.
        code: What the session may want to know: ``unknown``, ``too-large``, ``garbage`` ...
    """

    spec = FrameSpec(Role.MALFORMED, secret=("data",))  # what came may hold a credential too
    data: bytes
    problem: str
    code: str = "unknown"


FrameTable = Mapping[type[Frame], FrameSpec]

MALFORMED_SPEC = Malformed.spec


class KnownFrames(dict[type[Frame], FrameSpec]):
    """A frame table with what a journal asks about each frame; fakes of a protocol share one."""

    @cached_property
    def bulky(self) -> frozenset[type[Frame]]:
        """Those of which nothing has to be left out while they are small."""
        return frozenset([kind for kind, spec in self.items() if spec.bulk and not spec.has_secrets])

    @cached_property
    def careful(self) -> frozenset[type[Frame]]:
        """Those of which something may have to be left out."""
        return frozenset([kind for kind, spec in self.items() if spec.bulk or spec.has_secrets])

    @cached_property
    def envelopes(self) -> Mapping[type[Frame], str]:
        """Those that carry others, with their kinds."""
        return {kind: kind_of(kind) for kind, spec in self.items() if spec.inside is not None}


def kind_of(frame: Frame | type[Frame]) -> str:
    """The protocol's own name of a frame, such as ``PublishConfirm``."""
    kind = frame if isinstance(frame, type) else type(frame)
    return str(kind.__dict__.get("kind") or kind.__name__)


def frames_in(*modules: ModuleType) -> list[type[Frame]]:
    """The frames that these modules declare, in order; bases without a `spec` are left out."""
    return [
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Frame)
        and each.__module__ == module.__name__
        and hasattr(each, "spec")
    ]


def frame_table(frames: Iterable[type[Frame]]) -> FrameTable:
    """The specs of these frames, of what may be inside them, and of `Malformed`.

    Raises:
        ValueError: Two of them have the same kind, so that a fault could not tell them apart.
    """
    table: dict[type[Frame], FrameSpec] = {Malformed: Malformed.spec}
    names: dict[str, type[Frame]] = {kind_of(Malformed): Malformed}
    pending = list(frames)
    for each in pending:
        if each in table:
            continue
        other = names.setdefault(kind_of(each), each)
        if other is not each:
            raise ValueError(f"two frames have the kind {kind_of(each)!r}: {other!r} and {each!r}")
        table[each] = each.spec
        if each.spec.inside is not None:
            pending.extend(each.spec.inside.kinds())
    return table


def parts_of(frame: Frame, spec: FrameSpec, direction: str) -> list[Part]:
    """The frame by what its items share: one part, unless the items differ (`Items.mixed`).

    Parts stand in the order of their first items.
    """
    role = spec.role_in(direction)
    items = spec.items
    if items is None or not items.mixed:
        status = getattr(frame, spec.status) if spec.status else None
        return [Part(role, status, getattr(frame, spec.scope) if spec.scope else None, None)]
    groups: dict[tuple[Role, int | None, Any], list[int]] = {}
    for index in range(items.count(frame)):
        own = (items.role(frame, index) or role, items.status(frame, index), items.scope(frame, index))
        groups.setdefault(own, []).append(index)
    return [Part(*own, tuple(indices)) for own, indices in groups.items()]
