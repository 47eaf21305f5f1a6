"""A server that is slow on purpose is compared with a fake that is as slow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner

from conformance.cli import compare as cli_compare
from conformance.compare.compare import fake_for, target_of
from fakebrokers.protocol import find_protocol


@pytest.mark.parametrize("real_delays", [True, False])
def test_the_fake_is_as_slow_as_the_server(real_delays: bool) -> None:
    protocol = find_protocol("rabbitmq-stream")
    target = target_of(protocol, "rabbitmq-stream://127.0.0.1:1")
    with fake_for(protocol, target, "real", real_delays=real_delays) as fake:
        assert (fake.switches.failure_delay_s > 0) is real_delays  # type: ignore[attr-defined]
    nats = find_protocol("moleculer")
    with fake_for(nats, target_of(nats, "nats://127.0.0.1:1"), "real", real_delays=real_delays):
        pass  # it has no such option


@pytest.mark.parametrize(("flags", "wanted"), [((), True), (("--no-real-delays",), False)])
def test_it_is_so_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], wanted: bool
) -> None:
    asked: list[bool] = []

    @contextmanager
    def noted(*arguments: Any, real_delays: bool) -> Iterator[Any]:
        asked.append(real_delays)
        with fake_for(*arguments) as fake:
            yield fake

    monkeypatch.setattr(cli_compare, "fake_for", noted)
    command = ["--protocol", "moleculer", "--target", "nats://127.0.0.1:1", "--seeds", "1", *flags]
    CliRunner().invoke(cli_compare.compare_command, command)
    assert asked == [wanted]
