"""Which RabbitMQ the fake is: one switch per behaviour that differs between versions.

Sources: docs/protocols/rabbitmq-stream.md, 12 (measured on 3.10.8, 4.0.5 and 4.3.6), and 10 (the letter
of the seed document, profile ``seed``).
"""

from __future__ import annotations

import msgspec

#: highest command key a server knows
_ROUTING, _SUPER_STREAMS, _RESOLVE = 25, 30, 31


class Profile(msgspec.Struct, frozen=True):
    """The behaviour of one server version. All times are seconds, all sizes bytes.

    Attributes:
        name: What users ask for.
        version: The peer property ``version``; clients switch features on it.
        copyright: The peer property of that name.
        platform: The peer property of that name.
        mechanisms: SASL mechanisms, in the server's order.
        last_command: Highest command key that is known; anything above is an unknown frame.
        filters: Publish version 2, the filter argument and the filter properties are known.
        single_active_consumer: The subscription property of that name is honoured, not ignored.
        low_water_mark: Nothing is sent while the credit is at most half of the initial one.
        max_reference: Longest publisher reference; None: any length is taken.
        no_offset_code: QueryOffset answers code 19 if nothing is stored; else code 1 and offset 0.
        reads_max_age: Create crashes where max-age does not begin with a number; else any text will do.
        validates_batches: A bad sub-entry header gives PublishError 17; else it is stored unread.
        enforces_frame_max: A size prefix above the negotiated maximum gives Close 14.
        initial_frame_max: Largest frame before Open is done; None: any.
        split_handshake: A handshake frame may arrive in several segments, and come again; else the server
            closes.
        early_heartbeat: A Heartbeat before authentication is ignored; else the server closes.
        tolerates_answers: An answer of a shape without a rule gets Close 13; else a bare end.
        empty_frame_close: A frame of size 0 or 1 is answered with Close 13; else with a bare end.
        reauthentication: SaslAuthenticate is known on an open connection.
        reauthentication_checks_virtual_host: Logging in again is refused without access to the virtual host.
        closes_on_failed_reauthentication: A failed re-authentication ends the connection.
        checks_lookups: Metadata and Partitions need a right to read or write, Route one to write.
        response_bit_on_routes: The answers to Route and Partitions carry bit 15 of the key.
        document_layouts: Frames look as the early document lists them (see `codec_seed`).
        committed_offset_stat: StreamStats has the key ``committed_offset``.
        measured_failure_delay_s: How long the real server holds back the answer to a failed login.
        failure_delay_s: How long the fake does; 0 by default to keep tests fast (see `with_delays`).
        first_delivery_delay_s: Between the answer to Subscribe and the first chunk. A real server needs some
            time too, and some clients need it: it is when they hand the consumer to their caller. Not in
            memory.
        step_timeout_s: Longest silence within one step of the handshake.
        close_timeout_s: How long the server waits for the answer to its Close.
        request_timeout_s: How long the server waits for the answer to a ConsumerUpdate.
        frame_max: What the server's Tune offers.
        heartbeat_s: What the server's Tune offers.
        unconfirmed_max: Messages without confirm at which the server stops reading the socket.
        unconfirmed_resume: It reads again below this number.
    """

    name: str
    version: str
    copyright: str
    platform: str
    mechanisms: tuple[str, ...]
    last_command: int = _RESOLVE
    filters: bool = True
    single_active_consumer: bool = True
    low_water_mark: bool = True
    max_reference: int | None = 255
    no_offset_code: bool = True
    reads_max_age: bool = False
    validates_batches: bool = True
    enforces_frame_max: bool = True
    initial_frame_max: int | None = 8192
    split_handshake: bool = True
    early_heartbeat: bool = True
    tolerates_answers: bool = True
    empty_frame_close: bool = True
    reauthentication: bool = True
    reauthentication_checks_virtual_host: bool = True
    closes_on_failed_reauthentication: bool = True
    checks_lookups: bool = True
    response_bit_on_routes: bool = True
    document_layouts: bool = False
    committed_offset_stat: bool = True
    measured_failure_delay_s: float = 3.0
    failure_delay_s: float = 0.0
    first_delivery_delay_s: float = 0.001
    step_timeout_s: float = 10.0
    close_timeout_s: float = 10.0
    request_timeout_s: float = 60.0
    frame_max: int = 1_048_576
    heartbeat_s: int = 60
    unconfirmed_max: int = 50_000
    unconfirmed_resume: int = 37_500

    def with_delays(self) -> Profile:
        """The same profile with the real server's delay in front of failed logins."""
        return msgspec.structs.replace(self, failure_delay_s=self.measured_failure_delay_s)

    def send_limit(self, credit: int) -> int | None:
        """The credit up to which nothing is sent, for an initial `credit`; None: nothing is without credit.

        Half of it from 4.0 on (docs/protocols/rabbitmq-stream.md, 8 "Credits").
        """
        return credit // 2 if self.low_water_mark else None

    def reference_fits(self, reference: str) -> bool:
        """Whether a publisher reference or consumer name is short enough."""
        size = len(reference.encode(errors="surrogateescape"))
        return self.max_reference is None or size <= self.max_reference


V4_3 = Profile(
    name="4.3",
    version="4.3.6",
    copyright="Copyright (c) 2007-2026 Broadcom Inc and/or its subsidiaries",
    platform="Erlang/OTP 29.1.2",
    mechanisms=("ANONYMOUS", "AMQPLAIN", "PLAIN"),
)

V4_0 = msgspec.structs.replace(
    V4_3,
    name="4.0",
    version="4.0.5",
    copyright="Copyright (c) 2007-2024 Broadcom Inc and/or its subsidiaries",
    platform="Erlang/OTP 27.3.4.1",
    mechanisms=("ANONYMOUS", "PLAIN", "AMQPLAIN"),
    last_command=_SUPER_STREAMS,
    validates_batches=False,
    enforces_frame_max=False,
    initial_frame_max=None,
    split_handshake=False,
    early_heartbeat=False,
    tolerates_answers=False,
    empty_frame_close=False,
    reauthentication_checks_virtual_host=False,
    closes_on_failed_reauthentication=False,
    checks_lookups=False,
    committed_offset_stat=False,
)

V3_10 = msgspec.structs.replace(
    V4_0,
    name="3.10",
    version="3.10.8",
    copyright="Copyright (c) 2007-2022 VMware, Inc. or its affiliates.",
    platform="Erlang/OTP 25.2.3",
    mechanisms=("AMQPLAIN", "PLAIN"),
    last_command=_ROUTING,
    filters=False,
    single_active_consumer=False,
    low_water_mark=False,
    max_reference=None,
    reads_max_age=True,
    reauthentication=False,
    response_bit_on_routes=False,
    measured_failure_delay_s=0.0,
)

#: The letter of the early document where it says something else than the servers do and is consistent
#: with itself: 25 commands, 18 codes, no filters, one credit per chunk.
SEED = msgspec.structs.replace(
    V4_3,
    name="seed",
    version="3.9.0",
    mechanisms=("PLAIN", "AMQPLAIN"),
    last_command=_ROUTING,
    filters=False,
    single_active_consumer=False,
    low_water_mark=False,
    no_offset_code=False,
    max_reference=256,
    document_layouts=True,
    reauthentication=False,
    measured_failure_delay_s=0.0,
)

PROFILES = {"real": V4_3, "4.3": V4_3, "4.0": V4_0, "3.10": V3_10, "seed": SEED}
