"""Single active consumer: one of several consumers reads (docs/protocols/rabbitmq-stream.md, 8).

On a plain stream the first to subscribe is active until it ends. On a partition of a super stream it is the
one at *index of the partition modulo number of consumers*, so the partitions spread over the group:

    another one should be active -> ConsumerUpdate(0) -> its answer -> ConsumerUpdate(1) to the new one

A consumer is told when it becomes active and when it has to step down; one that waits is told nothing.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


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
        active: The member that was told to read; None while one steps down.
        stepping_down: The member that was told to stop and has not answered.
    """

    def __init__(self, partition: int | None) -> None:
        self.partition = partition
        self.members: list[Member] = []
        self.active: Member | None = None
        self.stepping_down: Member | None = None

    def chosen(self) -> Member | None:
        """Who should be active."""
        if not self.members:
            return None
        return self.members[(self.partition or 0) % len(self.members)]

    def rebalance(self, now: float) -> None:
        """Activate the member that should be active, after the former one has stepped down."""
        chosen = self.chosen()
        if self.stepping_down is not None or chosen is self.active:
            return
        former, self.active = self.active, None
        if former is None:
            self.active = chosen
            if chosen is not None:
                chosen.activate(now)
        else:
            self.stepping_down = former
            former.step_down(now)


class Coordinator:
    """All groups of a broker."""

    def __init__(self) -> None:
        self.groups: dict[GroupKey, Group] = {}

    def join(self, key: GroupKey, member: Member, partition: int | None, now: float) -> None:
        """Add a consumer whose Subscribe has been answered, and change who is active if that follows."""
        group = self.groups.setdefault(key, Group(partition))
        group.members.append(member)
        group.rebalance(now)

    def leave(self, key: GroupKey, member: Member, now: float) -> None:
        """Remove a consumer that is gone; one that is not known is ignored."""
        group = self.groups.get(key)
        if group is None or member not in group.members:
            return
        group.members.remove(member)
        if group.active is member:
            group.active = None
        if group.stepping_down is member:
            group.stepping_down = None
        if group.members:
            group.rebalance(now)
        else:
            del self.groups[key]

    def stepped_down(self, key: GroupKey, member: Member, now: float) -> None:
        """The client of a consumer has answered that it does not read any more."""
        group = self.groups.get(key)
        if group is not None and group.stepping_down is member:
            group.stepping_down = None
            group.rebalance(now)

    def forget_stream(self, virtual_host: str, stream: str) -> None:
        """Drop the groups of a stream that is gone; nobody is told."""
        for key in [key for key in self.groups if key[:2] == (virtual_host, stream)]:
            del self.groups[key]

    def clear(self) -> None:
        """Drop all groups."""
        self.groups.clear()
