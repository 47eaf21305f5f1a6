"""The recorded conversations in the order in which they build on each other.

A few cases are notes of a count, not bytes, or begin with what the recorder did elsewhere; those are played
out in words.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from fakebrokers.rabbitmq_stream.codes import Code, OffsetType
from fakebrokers.rabbitmq_stream.frames import (
    ConsumerUpdateResponse,
    Create,
    Credit,
    DeclarePublisher,
    DeclarePublisherResponse,
    ExchangeCommandVersions,
    StoreOffset,
    Subscribe,
    Unsubscribe,
)
from fakebrokers.rabbitmq_stream.publishing import publish
from fakebrokers.rabbitmq_stream.wiretypes import CommandVersions
from tests.rabbitmq_stream.bench import Client
from tests.rabbitmq_stream.stage import Stage, expect, rebuild

Scene = Callable[[Stage], None]


def handshake(stage: Stage) -> None:
    client = stage.bench.connect()
    for name in ("peer_properties", "sasl_handshake", "sasl_ok_tune", "tune_open_ok", "close_client"):
        stage.play(name, client)
    for name, state in {
        "sasl_fail_password": "authenticating",
        "sasl_unknown_mechanism": "authenticating",
        "sasl_plain_malformed": "authenticating",
        "sasl_amqplain_ok": "authenticating",
        "open_unknown_vhost": "tuned",
        "create_before_auth": "connected",
        "handshake_first": "connected",
        "garbage_first": "connected",
        "fragment_first": "connected",
        "pipelined_handshake": "connected",
        "fragment_handshake": "introduced",
        "tls_hello_on_plain": "connected",
        "heartbeat_before_auth": "introduced",
        "close_before_auth": "authenticating",
        "tune_response_key": "tuning",
        "tune_open_one_segment": "tuning",
    }.items():
        stage.play(name, stage.bench.connect().handshake(state))
    for name, state in {"silent_client": "connected", "no_tune_reply": "tuning"}.items():
        stage.play(name, stage.bench.connect().handshake(state), start=0.0)
    cut = stage.cases["peer_properties_9000"].client_bytes
    stage.play("peer_properties_9000", stage.bench.connect(), pad=0x2339 + 4 - len(cut))


def streams(stage: Stage) -> None:
    client = stage.bench.open()
    for name in (
        "create_ok",
        "create_exists",
        "create_exists_other_args",
        "create_arg_bad_locator",
        "create_arg_bad_maxage",
        "create_arg_neg_cluster",
        "create_arg_nonint_len",
    ):
        stage.play(name, client)
    client = stage.bench.open()
    for name in (
        "create_arg_unknown_arg",
        "create_arg_neg_len",
        "create_arg_filter_small",
        "create_arg_all_ok",
        "create_empty_name",
        "create_reserved_name",
        "create_newline",
        "delete_unknown",
        "metadata_mixed",
        "metadata_unknown",
        "metadata_empty",
    ):
        stage.play(name, client)
    stage.play("byte_by_byte", stage.bench.open(), segment=1)
    stage.play("two_frames_one_segment", stage.bench.open())


def publishing(stage: Stage) -> None:
    """From the first publisher to the numbers of the stream that it all went into."""
    bench = stage.bench
    admin = bench.open()
    admin.send(Create(5, stage.run, {}))
    client = bench.open()
    for name in (
        "declare_publisher_ok",
        "declare_publisher_dup_id",
        "declare_publisher_no_stream",
        "declare_publisher_ref",
        "declare_publisher_dup_ref",
        "declare_publisher_ref_256",
        "publish_confirm",
        "publish_same_id_no_ref",
        "publish_unknown_publisher",
        "publish_empty",
        "publish_ref_5_7",
        "publish_dedup",
        "query_sequence",
        "query_sequence_unknown_ref",
        "query_sequence_no_stream",
        "publish_subentry_none",
        "publish_subentry_gzip",
        "publish_v2_filter",
    ):
        stage.play(name, client)
    client = bench.open()
    client.send(DeclarePublisher(5, 0, "", stage.run))
    stage.play("delete_publisher_ok", client)
    stage.play("delete_publisher_unknown", client)
    client = bench.open()
    for name in (
        "query_offset_none",
        "query_offset_no_stream",
        "store_query_offset",
        "store_offset_lower",
        "store_offset_no_stream",
        "store_offset_ref_256",
    ):
        stage.play(name, client)
        bench.advance(0.01)
    stage.play("deliver_subentries", bench.open())
    large_frames(stage)
    extensions(stage)


def large_frames(stage: Stage) -> None:
    for name, frame_max, size in (
        ("frame_too_large_client_limit", 1024, 0x7E5),
        ("frame_too_large", 1_048_576, 0x10002D),
        ("frame_max_zero_client", 0, 0x10002D),
    ):
        client = stage.bench.open(frame_max=frame_max)
        client.send(DeclarePublisher(5, 0, "", stage.run))
        stage.play(name, client, pad=size + 4 - len(stage.cases[name].steps[0].data))
    stage.play("length_huge_prefix", stage.bench.open())


def extensions(stage: Stage) -> None:
    """Command versions, statistics, super streams and logging in again, on one connection."""
    bench = stage.bench
    client = bench.open()
    for name in (
        "exchange_command_versions",
        "exchange_command_versions_empty",
        "stream_stats",
        "stream_stats_unknown",
        "resolve_offset_spec",
        "create_super_stream",
        "create_super_stream_exists",
        "create_super_stream_mismatch",
        "partitions",
        "partitions_unknown",
        "route",
        "route_none",
        "route_unknown",
    ):
        client = bench.open() if client.ended or client.session.state == "closing" else client
        stage.play(name, client)
    reader = bench.open()
    if "deliver_v2" in stage.cases:
        reader.send(ExchangeCommandVersions(5, (CommandVersions(8, 1, 2),)))
        stage.play("deliver_v2", reader)
    if "delete_super_stream" in stage.cases:
        groups_in_super_streams(stage)
        client.send(Subscribe(9, 1, f"{stage.run}-super-0", OffsetType.NEXT, None, 1))
        for name in (
            "delete_super_stream",
            "delete_super_stream_unknown",
            "reauthenticate",
            "reauthenticate_bad",
        ):
            stage.play(name, client)


def groups_in_super_streams(stage: Stage) -> None:
    first, second = stage.bench.open(), stage.bench.open()
    stage.play("sac_super_1", first)
    first.sent.clear()
    stage.play("sac_super_2_new_before", second)
    expect(stage, "sac_super_2_old", first)
    second.sent.clear()
    first.send(ConsumerUpdateResponse(1, Code.OK, OffsetType.NONE))
    expect(stage, "sac_super_2_new_after", second)
    first.leave()
    second.leave()


def consuming(stage: Stage) -> None:
    bench, stream = stage.bench, f"{stage.run}-sub"
    bench.open().send(Create(5, stream, {}))
    for kind in ("first", "last", "next", "offset0", "offset99", "timestamp_old"):
        client = bench.open()
        stage.play(f"subscribe_empty_{kind}", client)
        client.leave()
    rebuild(stage, "subscribe_first", stream)
    for kind in (
        "first",
        "last",
        "next",
        "offset_4_midchunk",
        "offset_3_boundary",
        "offset_8",
        "offset_9_next",
        "ts_zero",
        "ts_after_chunk0",
        "ts_future",
        "offset_100_beyond",
    ):
        client = bench.open()
        stage.play(f"subscribe_{kind}", client)
    client.sent.clear()
    bench.broker.publish(stream, [b"\0Su\xa0\x04late"], bench.now)
    expect(stage, "subscribe_offset_100_then_publish", client)
    stage.play("subscribe_no_properties", bench.open())
    credits(stage, bench.open())
    stage.play("subscribe_bad_offset_type", bench.open())
    deletions(stage, stream)


def credits(stage: Stage, client: Client) -> None:
    for name in (
        "credit_1",
        "credit_1_more",
        "credit_10_more",
        "credit_unknown",
        "credit_zero",
        "subscribe_dup_id",
        "unsubscribe_ok",
        "unsubscribe_unknown",
        "subscribe_no_stream",
        "subscribe_credit_0",
    ):
        stage.play(name, client)


def deletions(stage: Stage, stream: str) -> None:
    both, reader, writer = (stage.bench.open() for _ in range(3))
    for client in (both, reader):
        client.send(Subscribe(5, 1, stream, OffsetType.NEXT, None, 1))
    for client in (both, writer):
        client.send(DeclarePublisher(6, 5, "", stream))
    for client in (both, reader, writer):
        client.sent.clear()
    stage.play("delete_self_subscribed", both)
    expect(stage, "delete_with_subscriber", reader)
    expect(stage, "delete_with_publisher", writer)
    stage.play("publish_after_delete", writer)
    stage.play("credit_after_delete", reader)


def low_water_mark(stage: Stage) -> None:
    case = stage.skip("credit_send_limit")
    assert case is not None
    bench = stage.bench
    client = bench.open()
    client.send(Create(5, "s", {}))
    for _ in range(16):
        bench.broker.publish("s", [b"x"], bench.now)
    client.sent.clear()
    client.send(Subscribe(6, 1, "s", OffsetType.FIRST, None, 10))
    counts = [len(client.frames()) - 1]
    for _ in range(8):
        client.send(Credit(1, 1))
        bench.broker.publish("s", [b"x"], bench.now)
        counts.append(len(client.frames()))
    found = re.search(r"\[.*?\]", case.note)
    assert found
    assert counts == ast.literal_eval(found[0])


def tracking(stage: Stage) -> None:
    bench, stream = stage.bench, f"{stage.run}-trk"
    client = bench.open()
    client.send(Create(5, stream, {}))
    bench.broker.publish(stream, [b"a", b"b"], bench.now)
    for offset in (1, 2):
        bench.advance(0.4)
        client.send(StoreOffset("r", stream, offset))
    bench.advance(0.4)
    bench.broker.publish(stream, [b"c"], bench.now)
    stage.play("offset_gap_by_tracking", client)
    stage.play("last_skips_tracking", bench.open())


def filters(stage: Stage) -> None:
    bench, stream = stage.bench, f"{stage.run}-filt"
    client = bench.open()
    client.send(Create(5, stream, {}), DeclarePublisher(6, 1, "", stream))
    if not stage.bench.broker.profile.filters:
        return
    for index, (value, body) in enumerate([("apple", b"a"), ("pear", b"p"), (None, b"n")]):
        client.send(publish(1, [(index, body)], [value]))
    for name in ("filter_apple", "filter_apple_unf", "filter_kiwi", "filter_none"):
        stage.play(name, bench.open())


def single_active_consumer(stage: Stage) -> None:
    bench = stage.bench
    client, second = bench.open(), bench.open()
    for name in (f"{stage.run}-sac", f"{stage.run}-sact"):
        client.send(Create(5, name, {}))
        bench.broker.publish(name, [b"s0", b"s1"], bench.now)
    stage.play("sac_first", client)
    stage.play("sac_second", second)
    stage.play("sac_answer_first", client)
    stage.play("sac_credit_inactive", second)
    second.sent.clear()
    client.send(Unsubscribe(8, 1))
    expect(stage, "sac_failover", second)
    stage.play("sac_answer_offset", second)
    stage.play("sac_no_name", bench.open())
    stage.play("sac_update_unanswered", bench.open())


def resolving(stage: Stage) -> None:
    """One stream, from empty on; its chunks are known from the subscription that reads them all."""
    bench, stream = stage.bench, f"{stage.run}-x"
    client = bench.open()
    if "resolve_first" in stage.cases:
        stage.play("resolve_empty_first", client)
        stage.play("resolve_empty_next", client)
        rebuild(stage, "subscribe_chunk_selector_all", stream, below=9)
    else:
        client.send(Create(5, stream, {}))
    for name in ("first", "last", "next", "offset_4", "offset_100", "ts_0", "ts_future", "unknown"):
        stage.play(f"resolve_{name}", client)
    stage.play("resolve_no_props", client)
    for name in ("bad_count0", "bad_comp7", "bad_huge_uncompressed"):
        stage.play(f"publish_subentry_{name}", client)
    stage.play("publish_count_wrong", client)
    bench.advance(0.1)
    bench.open().send(StoreOffset("appx", stream, 1))
    stage.play("subscribe_chunk_selector_all", bench.open())
    writer = bench.open()
    writer.send(DeclarePublisher(5, 0, "", stream))
    stage.play("publish_truncated_entry", writer)


def bad_frames(stage: Stage) -> None:
    for name in stage.cases:
        if name.startswith(("bad_", "close_by_server")):
            stage.play(name, stage.bench.open())
    stage.play("garbage_after_open", stage.bench.open())


def heartbeats(stage: Stage) -> None:
    for name, interval in {"heartbeat_missed": 2, "heartbeat_missed_1": 1, "heartbeat_kept": 1}.items():
        client = stage.bench.open(heartbeat=interval)
        stage.play(name, client, start=0.0)
        client.leave()
    stage.skip("heartbeat_zero")
    client = stage.bench.open(heartbeat=0)
    stage.bench.advance(8.0)
    assert client.sent == []


def operators(stage: Stage) -> None:
    """What the recorder did through the management API."""
    bench, stream = stage.bench, f"{stage.run}-m"
    client = bench.open()
    client.send(Create(5, stream, {}), DeclarePublisher(6, 1, "", stream))
    client.send(Subscribe(7, 1, stream, OffsetType.NEXT, None, 1))
    client.sent.clear()
    bench.broker.delete(stream, bench.now)
    expect(stage, "delete_via_management", client)
    client.session.kick(bench.now)
    expect(stage, "connection_killed_by_management", client)


def many_publishers(stage: Stage) -> None:
    case = stage.skip("publishers_256")
    assert case is not None
    assert case.note == "ok=256 others=[]"
    client = stage.bench.open()
    client.send(Create(5, "s", {}))
    client.frames()
    client.send(*[DeclarePublisher(number, number, "", "s") for number in range(256)])
    assert client.frames() == [DeclarePublisherResponse(number, Code.OK) for number in range(256)]


SCENES: list[Scene] = [
    handshake,
    streams,
    publishing,
    consuming,
    low_water_mark,
    tracking,
    filters,
    single_active_consumer,
    resolving,
    bad_frames,
    heartbeats,
    operators,
    many_publishers,
]
