"""Single active consumer: one of several consumers reads (docs/protocols/rabbitmq-stream.md, 8).

On a plain stream the first to subscribe is active until it ends. On a partition of a super stream it is the
one at *index of the partition modulo number of consumers*, so the partitions spread over the group:

    another one should be active -> ConsumerUpdate(0) -> its answer -> ConsumerUpdate(1) to the new one

A consumer is told when it becomes active and when it has to step down; one that waits is told nothing. Who
has not answered yet still counts as active, so it is told to step down again with each change of the group
that does not choose it. All members of a group have to name the same partition, or none.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.refusals import Refused


class Member(Protocol):
    """A single active consumer, as its connection shows it to the coordinator."""

    def activate(self, now: float) -> None:
        """Make it the active one; its client is asked where to read from."""

    def step_down(self, now: float) -> None:
        """End its turn; `Coordinator.stepped_down` has to be called when its client has answered."""


class GroupKey(NamedTuple):
    """What consumers have to share to be one group."""

    virtual_host: str
    stream: str
    name: str


class Group:
    """The consumers of one group.

    Attributes:
        partition: Index of the partition in its super stream; None: a plain stream.
        members: In the order in which they came.
        active: The member that was told to read, also while it steps down; None: there is no member.
        stepping_down: `active` was told to stop and has not answered.
    """

    def __init__(self, partition: int | None) -> None:
        self.partition = partition
        self.members: list[Member] = []
        self.active: Member | None = None
        self.stepping_down = False

    def chosen(self) -> Member | None:
        """Who should be active."""
        if not self.members:
            return None
        return self.members[(self.partition or 0) % len(self.members)]

    def rebalance(self, now: float) -> None:
        """Activate the member that should be active, after the former one has stepped down."""
        chosen = self.chosen()
        if self.active is None:
            self.activate(chosen, now)
        elif chosen is not self.active:
            self.stepping_down = True
            self.active.step_down(now)

    def activate(self, chosen: Member | None, now: float) -> None:
        """Make a member the active one, unless it is and was not told to stop."""
        if chosen is self.active and not self.stepping_down:
            return
        self.active, self.stepping_down = chosen, False
        if chosen is not None:
            chosen.activate(now)


class Coordinator:
    """All groups of a broker."""

    def __init__(self) -> None:
        self.groups: dict[GroupKey, Group] = {}

    def join(self, key: GroupKey, member: Member, partition: int | None, now: float) -> None:
        """Add a consumer whose Subscribe has been answered, and change who is active if that follows."""
        group = self.groups.setdefault(key, Group(partition))
        group.members.append(member)
        group.rebalance(now)

    def check_partition(self, key: GroupKey, partition: int | None) -> None:
        """Check that a consumer may join a group.

        Raises:
            Refused: The members of the group name another partition, or none: code 17.
        """
        group = self.groups.get(key)
        if group is not None and group.partition != partition:
            raise Refused(Code.PRECONDITION_FAILED)

    def leave(self, key: GroupKey, member: Member, now: float) -> None:
        """Remove a consumer that is gone; one that is not known is ignored."""
        group = self.groups.get(key)
        if group is None or member not in group.members:
            return
        group.members.remove(member)
        if group.active is member:
            group.active, group.stepping_down = None, False
        if group.members:
            group.rebalance(now)
        else:
            del self.groups[key]

    def stepped_down(self, key: GroupKey, now: float) -> None:
        """The client of a consumer has answered that it does not read any more."""
        group = self.groups.get(key)
        if group is not None:
            group.activate(group.chosen(), now)

    def forget_stream(self, virtual_host: str, stream: str) -> None:
        """Drop the groups of a stream that is gone; nobody is told."""
        for key in [key for key in self.groups if key[:2] == (virtual_host, stream)]:
            del self.groups[key]

    def clear(self) -> None:
        """Drop all groups."""
        self.groups.clear()
