"""What the checks of data start from: each message's fate, each reader, each drain.

Twins of `conformance.checkers.history`, with the same meanings.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

#: What ties rows to a log of a run.
LOG = ("run", "key")


def fates(ops: DataFrame) -> DataFrame:
    """One row per run, log and value: how often, when first, and where it was sent, acked and delivered."""
    sent = _is("publish", "invoke")
    acked = _is("publish", "ok")
    failed = _is("publish", "fail")
    delivered = _is("deliver", "ok")
    messages = ops.where(F.col("value").isNotNull() & F.col("f").isin("publish", "deliver"))
    return messages.groupBy("run", F.coalesce("key", F.lit("")).alias("key"), "value").agg(
        F.count(F.when(sent, 1)).alias("sent"),
        F.count(F.when(acked, 1)).alias("acked"),
        F.count(F.when(failed, 1)).alias("failed"),
        F.count(F.when(delivered, 1)).alias("delivered"),
        F.min(F.when(sent, F.col("seq"))).alias("sent_seq"),
        F.min(F.when(acked, F.col("seq"))).alias("acked_seq"),
        F.min(F.when(failed, F.col("seq"))).alias("failed_seq"),
        F.min(F.when(delivered, F.col("seq"))).alias("delivered_seq"),
        F.max(F.when(delivered, F.col("seq"))).alias("last_delivered_seq"),
        F.min(F.when(sent, F.col("t_ns"))).alias("sent_ns"),
        F.min(F.when(acked, F.col("t_ns"))).alias("acked_ns"),
        F.min(F.when(delivered, F.col("t_ns"))).alias("delivered_ns"),
        F.min(F.when(acked | delivered, F.col("offset"))).alias("lowest"),
        F.max(F.when(acked | delivered, F.col("offset"))).alias("highest"),
        F.max(F.when(acked, F.col("offset"))).alias("acked_offset"),
    )


def readers(ops: DataFrame, found: DataFrame) -> DataFrame:
    """One row per run, log and process: since when it read, and the bounds of what it got."""
    reads = ops.where((F.col("outcome") == "ok") & F.col("f").isin("subscribe", "deliver")).select(
        "run",
        F.coalesce("key", F.lit("")).alias("key"),
        "process",
        "seq",
        F.when(F.col("f") == "deliver", F.col("value")).alias("value"),
        F.when((F.col("f") == "deliver") & F.col("value").isNotNull(), F.col("offset")).alias("offset"),
    )
    return (
        reads.join(found.select(*LOG, "value", "sent_seq"), [*LOG, "value"], "left")
        .groupBy(*LOG, "process")
        .agg(
            F.min("seq").alias("first_seq"),
            F.max("sent_seq").alias("newest_sent"),
            F.min("offset").alias("reader_lowest"),
            F.max("offset").alias("reader_highest"),
        )
    )


def drains(ops: DataFrame) -> DataFrame:
    """One row per run and log that was drained: when."""
    return (
        ops.where(_is("drain", "ok"))
        .groupBy("run", F.coalesce("key", F.lit("")).alias("key"))
        .agg(F.max("seq").alias("drained_seq"))
    )


def _is(f: str, outcome: str) -> Column:
    return (F.col("f") == f) & (F.col("outcome") == outcome)
