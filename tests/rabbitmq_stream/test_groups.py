from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.groups import Coordinator, GroupKey
from fakebrokers.rabbitmq_stream.refusals import Refused

KEY = GroupKey("/", "s", "g")


class Consumer:
    """A member that writes down what it is told."""

    def __init__(self, name: str, told: list[str]) -> None:
        self.name = name
        self.told = told
        self.reads = False

    def activate(self, now: float) -> None:
        self.reads = True
        self.told.append(f"{self.name} on")

    def step_down(self, now: float) -> None:
        self.reads = False
        self.told.append(f"{self.name} off")


class Fixture:
    """A group on a plain stream, or on a partition."""

    def __init__(self, partition: int | None = None) -> None:
        self.partition = partition
        self.told: list[str] = []
        self.coordinator = Coordinator()

    def join(self, name: str) -> Consumer:
        consumer = Consumer(name, self.told)
        self.coordinator.join(KEY, consumer, self.partition, 0.0)
        return consumer

    def news(self) -> list[str]:
        news, self.told[:] = list(self.told), []
        return news


def test_on_a_plain_stream_the_first_is_active_until_it_goes() -> None:
    group = Fixture()
    a, b, c = group.join("a"), group.join("b"), group.join("c")
    assert group.news() == ["a on"]
    group.coordinator.leave(KEY, b, 0.0)
    assert group.news() == []
    group.coordinator.leave(KEY, a, 0.0)
    assert group.news() == ["c on"]
    group.coordinator.leave(KEY, c, 0.0)
    assert group.news() == []
    assert group.coordinator.groups == {}


def test_on_a_partition_the_index_decides_and_the_old_one_steps_down_first() -> None:
    group = Fixture(partition=1)
    a = group.join("a")
    assert group.news() == ["a on"]
    group.join("b")
    assert group.news() == ["a off"]
    group.coordinator.stepped_down(KEY, 0.0)
    assert group.news() == ["b on"]
    group.join("c")  # 1 mod 3: still b
    assert group.news() == []
    group.coordinator.leave(KEY, a, 0.0)  # b, c: 1 mod 2 is c
    assert group.news() == ["b off"]
    group.coordinator.stepped_down(KEY, 0.0)
    assert group.news() == ["c on"]


def test_partition_0_behaves_like_a_plain_stream() -> None:
    group = Fixture(partition=0)
    a = group.join("a")
    group.join("b")
    assert group.news() == ["a on"]
    group.coordinator.leave(KEY, a, 0.0)
    assert group.news() == ["b on"]


def test_the_group_goes_on_when_the_one_that_steps_down_goes() -> None:
    group = Fixture(partition=1)
    a = group.join("a")
    group.join("b")
    group.news()
    group.coordinator.leave(KEY, a, 0.0)
    assert group.news() == ["b on"]


def test_who_steps_down_in_vain_is_made_active_again() -> None:
    group = Fixture(partition=1)
    group.join("a")
    b = group.join("b")
    group.coordinator.leave(KEY, b, 0.0)
    assert group.news() == ["a on", "a off"]
    group.coordinator.stepped_down(KEY, 0.0)
    assert group.news() == ["a on"]


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    group = Fixture()
    a = group.join("a")
    group.coordinator.stepped_down(KEY, 0.0)
    group.coordinator.stepped_down(GroupKey("/", "other", "g"), 0.0)
    group.coordinator.leave(GroupKey("/", "other", "g"), a, 0.0)
    assert group.news() == ["a on"]


def test_who_has_not_answered_is_told_again_with_each_change() -> None:
    group = Fixture(partition=1)
    group.join("a")
    group.join("b")
    group.join("c")
    assert group.news() == ["a on", "a off", "a off"]
    group.coordinator.stepped_down(KEY, 0.0)
    group.coordinator.stepped_down(KEY, 0.0)
    assert group.news() == ["b on"]


@pytest.mark.parametrize(("first", "second"), [(None, 0), (0, None), (0, 1)])
def test_a_group_has_one_partition_or_none(first: int | None, second: int | None) -> None:
    group = Fixture(partition=first)
    group.coordinator.check_partition(KEY, second)
    group.join("a")
    group.coordinator.check_partition(KEY, first)
    with pytest.raises(Refused) as caught:
        group.coordinator.check_partition(KEY, second)
    assert caught.value.code == Code.PRECONDITION_FAILED


def test_groups_differ_by_stream_name_and_virtual_host() -> None:
    coordinator, told = Coordinator(), list[str]()
    for number, key in enumerate(
        [KEY, KEY._replace(name="h"), KEY._replace(stream="t"), KEY._replace(virtual_host="v")]
    ):
        coordinator.join(key, Consumer(f"{number}", told), None, 0.0)
    assert told == ["0 on", "1 on", "2 on", "3 on"]


def test_the_groups_of_a_lost_stream_vanish_without_a_word() -> None:
    group = Fixture()
    a = group.join("a")
    group.join("b")
    group.news()
    group.coordinator.forget_stream("/", "s")
    group.coordinator.leave(KEY, a, 0.0)
    assert group.news() == []


class GroupMachine(RuleBasedStateMachine):
    """Consumers come, go and answer in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.group = Fixture()
        self.members: list[Consumer] = []
        self.asked: list[Consumer] = []  # told to step down, no answer yet
        self.names = 0

    @rule(partition=st.sampled_from([None, 0, 1, 2, 5]))
    @precondition(lambda self: not self.members)
    def begin(self, partition: int | None) -> None:
        self.group.partition = partition
        self.come()

    @rule()
    @precondition(lambda self: self.members)
    def come(self) -> None:
        self.names += 1
        # join before the model knows: what is told meanwhile is looked at in `hear`
        self.members.append(self.group.join(f"c{self.names}"))
        self.hear()

    @rule(data=st.data())
    @precondition(lambda self: self.members)
    def go(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from(self.members))
        self.members.remove(member)
        self.asked = [one for one in self.asked if one is not member]
        member.reads = False
        self.group.coordinator.leave(KEY, member, 0.0)
        self.hear()

    @rule()
    @precondition(lambda self: self.asked)
    def answer(self) -> None:
        self.asked.pop(0)
        self.group.coordinator.stepped_down(KEY, 0.0)
        self.hear()

    def hear(self) -> None:
        for line in self.group.news():
            name, word = line.split()
            if word == "off":
                self.asked += [member for member in self.members if member.name == name]

    @invariant()
    def never_two_at_once(self) -> None:
        assert sum(member.reads for member in self.members) <= 1

    @invariant()
    def the_right_one_reads_when_nobody_has_to_answer(self) -> None:
        if self.members and not self.asked:
            chosen = self.members[(self.group.partition or 0) % len(self.members)]
            assert [member for member in self.members if member.reads] == [chosen]


TestGroupMachine = GroupMachine.TestCase
TestGroupMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
