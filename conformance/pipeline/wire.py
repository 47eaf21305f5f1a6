"""Publishes and confirms on the wire, key by key: the only place where batches are expanded."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

TAPS_ARRIVED = ("in", "received")
TAPS_LEFT = ("out", "sent")


def wire_keys(frames: DataFrame) -> DataFrame:
    """One row per run, connection, scope and key: how often published and confirmed, and when first.

    Frames without a key count under the key null, with all their items.
    """
    publish = (F.col("role") == "publish") & F.col("tap").isin(*TAPS_ARRIVED)
    confirm = (F.col("role") == "confirm") & F.col("tap").isin(*TAPS_LEFT)
    numbers = F.sequence(F.col("key_first"), F.col("key_first") + F.col("items") - 1)
    keys = F.when(F.col("key_first").isNotNull(), numbers.cast("array<string>")).otherwise(F.col("keys"))
    weight = F.when(F.col("wire").isNull(), F.col("items")).otherwise(1)
    is_publish = F.col("role") == "publish"
    return (
        frames.where(publish | confirm)
        .select("run", "connection", "scope", "role", "t_ns", "items", F.explode_outer(keys).alias("wire"))
        .groupBy("run", "connection", "scope", "wire")
        .agg(
            F.sum(F.when(is_publish, weight).otherwise(0)).alias("published"),
            F.sum(F.when(~is_publish, weight).otherwise(0)).alias("confirmed"),
            F.min(F.when(is_publish, F.col("t_ns"))).alias("published_ns"),
            F.min(F.when(~is_publish, F.col("t_ns"))).alias("confirmed_ns"),
        )
    )
