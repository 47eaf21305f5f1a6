"""The anomalies, each as a pure transform of data frames. Twins of `conformance.checkers`, same names.

Every check returns the columns of `FINDING`; `judge` adds what is known of the run.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from conformance.checkers.anomaly import (
    GRACE_MS,
    LAG,
    LEFT,
    NOTICED,
    RECONNECTS,
    REPOSITIONS,
    TOLERANCE,
)
from conformance.pipeline.fates import LOG, drains, readers
from fakebrokers.journal.record import Meaning, states_that

FINDING = ("name", "run", "key", "value", "process", "seqs", "detail")


def lost_write(found: DataFrame, ops: DataFrame, runs: DataFrame) -> DataFrame:
    """Acknowledged, never delivered, and proven to be gone."""
    missing = (
        found.where((F.col("acked") > 0) & (F.col("delivered") == 0))
        .select(*LOG, "value", "sent_seq", "acked_seq", "acked_offset")
        .join(runs.select("run", _ordered().alias("ordered")), "run")
        .join(drains(ops), list(LOG), "left")
    )
    around = (F.col("reader_lowest") < F.col("acked_offset")) & (
        F.col("acked_offset") < F.col("reader_highest")
    )
    past = (
        F.col("ordered")
        & (F.col("first_seq") < F.coalesce("sent_seq", F.lit(0)))
        & (F.col("newest_sent") > F.col("acked_seq"))
    )
    witness = F.min(F.when(around | past, F.col("process")))
    drained = ~F.col("ordered") & (F.col("drained_seq") > F.col("acked_seq"))
    carried = ("sent_seq", "acked_seq", "ordered", "drained_seq")
    judged = (
        missing.join(readers(ops, found), list(LOG), "left")
        .groupBy(*LOG, "value", *carried)
        .agg(witness.alias("witness"))
        .where(F.col("witness").isNotNull() | drained)
    )
    return _finding(
        judged,
        "lost-write",
        process=F.coalesce("witness", F.lit("")),
        seqs=_seqs("sent_seq", "acked_seq"),
        detail=F.when(F.col("witness").isNotNull(), "read past").otherwise("drained"),
    )


def unseen(found: DataFrame, ops: DataFrame) -> DataFrame:
    """Acknowledged, and nobody had got it when the log was drained."""
    missing = found.where((F.col("acked") > 0) & (F.col("delivered") == 0)).join(drains(ops), list(LOG))
    return _finding(
        missing.where(F.col("drained_seq") > F.col("acked_seq")),
        "unseen",
        seqs=_seqs("sent_seq", "acked_seq"),
        detail=F.lit("drained"),
    )


def duplicate(found: DataFrame) -> DataFrame:
    """It sits at more than one offset; where there are none: it was delivered more often than sent."""
    twice = F.col("lowest") < F.col("highest")
    often = F.col("lowest").isNull() & (F.col("sent") > 0) & (F.col("sent") < F.col("delivered"))
    return _finding(
        found.where(twice | often),
        "duplicate",
        seqs=_seqs("delivered_seq", "last_delivered_seq"),
        detail=F.when(twice, _offsets("lowest", "highest")).otherwise(
            F.format_string("sent %d, delivered %d", "sent", "delivered")
        ),
    )


def g1a(found: DataFrame) -> DataFrame:
    """Delivered, although every attempt to send it had surely failed."""
    aborted = found.where("delivered > 0 and failed > 0 and acked = 0 and failed >= sent")
    return _finding(
        aborted, "G1a", seqs=_seqs("failed_seq", "delivered_seq"), detail=F.lit("failed, yet delivered")
    )


def polls_out_of_order(ops: DataFrame) -> DataFrame:
    """``poll-skip`` and ``nonmonotonic-poll``: steps of a reader by more or less than one message."""
    here = F.coalesce("key", F.lit(""))
    delivery = (F.col("f") == "deliver") & (F.col("outcome") == "ok") & F.col("offset").isNotNull()
    placed = delivery | ((F.col("f") == "publish") & (F.col("outcome") == "ok") & F.col("offset").isNotNull())
    moved = F.col("f").isin(*REPOSITIONS) & F.col("outcome").isin("ok", "info")
    reconnected = F.col("f").isin(*RECONNECTS) & (F.col("outcome") == "event")
    of_process = Window.partitionBy("run", "process").orderBy("seq")
    of_reader = Window.partitionBy("run", "process", "key").orderBy("seq")
    # A subscription starts a new epoch of one log, a reconnect one of all logs of the process.
    epochs = (
        ops.where(placed | moved | reconnected)
        .withColumn("key", here)
        .withColumn("epoch", F.sum(F.when(reconnected, 1).otherwise(0)).over(of_process))
        .withColumn("moves", F.sum(F.when(moved, 1).otherwise(0)).over(of_reader))
        .where(placed)
        .withColumn("index", F.dense_rank().over(Window.partitionBy(*LOG).orderBy("offset")))
        .where(delivery)
    )
    successive = Window.partitionBy("run", "process", "key", "epoch", "moves").orderBy("seq")
    steps = (
        epochs.withColumn("delta", F.col("index") - F.lag("index").over(successive))
        .withColumn("before", F.lag("seq").over(successive))
        .where("delta != 1")
        .withColumn("value", F.coalesce("value", F.lit("")))
    )
    skipped = F.col("delta") > 1
    return _finding(
        steps,
        F.when(skipped, "poll-skip").otherwise("nonmonotonic-poll"),
        process=F.col("process"),
        seqs=F.array("before", "seq"),
        detail=F.when(skipped, F.format_string("%d skipped", F.col("delta") - 1)).otherwise(
            F.format_string("%d back", 1 - F.col("delta"))
        ),
    )


def stuck_request(ops: DataFrame, runs: DataFrame) -> DataFrame:
    """An op that had not ended in any way when its run did."""
    begun = F.col("outcome") == "invoke"
    ended = ~begun & ~F.col("error").eqNullSafe("hang")
    first = F.min(F.when(begun, F.struct("seq", "f", "key", "value")))
    judged = (
        ops.where("op_id is not null")
        .groupBy("run", "process", "op_id")
        .agg(first.alias("first"), F.count(F.when(ended, 1)).alias("ends"))
        .where("first is not null and ends = 0")
        .join(runs.where("ended").select("run"), "run", "left_semi")
    )
    text = {name: F.coalesce(F.col("first")[name], F.lit("")) for name in ("key", "value")}
    return _finding(
        judged.withColumns(text),
        "stuck-request",
        process=F.col("process"),
        seqs=F.array("first.seq"),
        detail=F.col("first.f"),
    )


def phantom_confirm(ops: DataFrame, wire: DataFrame) -> DataFrame:
    """The client counts a publish as confirmed although the confirm never left the fake.

    Args:
        wire: See `wire_keys`.
    """
    acked = ops.where((F.col("f") == "publish") & (F.col("outcome") == "ok"))
    last = F.max(F.struct("seq", "key", "process")).alias("last")
    # One number may stand for a batch of messages: then more are acknowledged than were published.
    counted = F.least("acked", "published")
    keyed = (
        acked.where("wire_key is not null")
        .groupBy("run", F.col("wire_key").alias("wire"))
        .agg(F.count("*").alias("acked"), last)
        .join(_paired(wire, "wire").where("published > 0"), ["run", "wire"])
        .where(counted > F.col("confirmed"))
        .select("*", F.col("wire").alias("value"))
    )
    phantoms = keyed.groupBy("run").agg(F.sum(counted - F.col("confirmed")).alias("phantoms"))
    totals = (
        acked.groupBy("run")
        .agg(F.count("*").alias("acked"), last)
        .join(_paired(wire).where("published > 0"), "run")
        .join(phantoms, "run", "left")
        .where(counted - F.coalesce("phantoms", F.lit(0)) > F.col("confirmed"))
    )
    detail = F.format_string("%d acknowledged, %d sent", "acked", "confirmed")
    seqs = F.array("last.seq")
    named = _finding(
        keyed.withColumn("key", F.coalesce("last.key", F.lit(""))),
        "phantom-confirm",
        process=F.col("last.process"),
        seqs=seqs,
        detail=detail,
    )
    unnamed = totals.withColumns({"key": F.lit(""), "value": F.lit("")})
    return named.unionByName(_finding(unnamed, "phantom-confirm", seqs=seqs, detail=detail))


def _paired(wire: DataFrame, *by: str) -> DataFrame:
    """How much was published, and how much of that was confirmed where it was published."""
    published, confirmed = F.sum("published"), F.sum("confirmed")
    return (
        wire.groupBy("run", *by, "place", "scope")
        .agg(published.alias("published"), F.least(published, confirmed).alias("confirmed"))
        .groupBy("run", *by)
        .agg(published.alias("published"), confirmed.alias("confirmed"))
    )


def missed_heartbeat_ignored(
    frames: DataFrame, ops: DataFrame, metrics: DataFrame, runs: DataFrame
) -> DataFrame:
    """The fake was silent on a connection for longer than agreed, and the client did not mind.

    A client has as much more time as the harness itself stood still.
    """
    lags = metrics.where(F.col("name") == LAG).groupBy("run").agg(F.max("value").alias("lag_ms"))
    budget_ms = F.col("heartbeat_limit_ms") * TOLERANCE + GRACE_MS + F.coalesce("lag_ms", F.lit(0.0))
    limited = (
        runs.where("heartbeat_limit_ms is not null")
        .join(lags, "run", "left")
        .select("run", F.round(budget_ms * 1e6).cast("long").alias("budget"))
    )
    times = reduce(DataFrame.union, [table.select("run", "t_ns") for table in (frames, ops, metrics)])
    end = times.join(limited, "run", "left_semi").groupBy("run").agg(F.max("t_ns").alias("end_ns"))
    noticed = (
        ops.where((F.col("outcome") == "event") & F.col("f").isin(*NOTICED))
        .groupBy("run")
        .agg(F.collect_list("t_ns").alias("noticed"))
    )
    ended = ((F.col("tap") == "state") & F.col("kind").isin(*states_that(Meaning.END))) | (
        (F.col("direction") == "in") & (F.col("role") == "close")
    )
    ends = frames.where(ended).groupBy("run", "connection").agg(F.collect_list("t_ns").alias("ends"))
    here = Window.partitionBy("run", "connection").orderBy("seq")
    silence = F.col("over") - F.col("t_ns")
    nothing = F.array().cast("array<long>")
    reacted = F.exists(
        F.concat(F.coalesce("noticed", nothing), F.coalesce("ends", nothing)),
        lambda t: t.between(F.col("t_ns"), F.col("t_ns") + F.col("budget")),
    )
    judged = (
        frames.where(F.col("tap").isin(*LEFT))
        .join(F.broadcast(limited), "run")
        .withColumn("next_ns", F.lead("t_ns").over(here))
        .where("role != 'handshake'")  # before its end nothing is agreed yet
        .where("next_ns is null or next_ns > t_ns + budget")
        .join(end, "run")
        .join(noticed, "run", "left")
        .join(ends, ["run", "connection"], "left")
        .withColumn("over", F.coalesce("next_ns", "end_ns"))
        .where((silence > F.col("budget")) & ~reacted)
        .withColumns({"key": F.col("connection"), "value": F.lit("")})
    )
    return _finding(
        judged,
        "missed-heartbeat-ignored",
        seqs=F.array("seq"),
        detail=F.format_string("silent for %d ms", F.floor(silence / 1_000_000).cast("long")),
    )


def _finding(
    rows: DataFrame,
    name: str | Column,
    *,
    seqs: Column,
    detail: Column,
    process: Column | None = None,
) -> DataFrame:
    """Bring rows with ``run``, ``key`` and ``value`` into the shape of `FINDING`."""
    return rows.select(
        (F.lit(name) if isinstance(name, str) else name).alias("name"),
        "run",
        "key",
        "value",
        (F.lit("") if process is None else process).alias("process"),
        seqs.cast("array<long>").alias("seqs"),
        detail.alias("detail"),
    )


def _offsets(lowest: str, highest: str) -> Column:
    return F.concat(
        F.lit("offsets "), F.col(lowest).cast("string"), F.lit(" and "), F.col(highest).cast("string")
    )


def _ordered() -> Column:
    return F.array_contains(F.split("contract", r"\s+"), "ordered")


def _seqs(*names: str) -> Column:
    return F.array_compact(F.array(*names))
