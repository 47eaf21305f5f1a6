"""Publishes and confirms on the wire, key by key: the only place where batches are expanded."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

TAPS_ARRIVED = ("in", "received")
TAPS_LEFT = ("out", "sent")


def wire_keys(frames: DataFrame) -> DataFrame:
    """One row per run, connection, scope and key: how often published and confirmed, and when first."""
    publish = (F.col("role") == "publish") & F.col("tap").isin(*TAPS_ARRIVED)
    confirm = (F.col("role") == "confirm") & F.col("tap").isin(*TAPS_LEFT)
    numbers = F.sequence(F.col("key_first"), F.col("key_first") + F.col("items") - 1)
    keys = F.when(F.col("key_first").isNotNull(), numbers.cast("array<string>")).otherwise(F.col("keys"))
    return (
        frames.where(publish | confirm)
        .select("run", "connection", "scope", "role", "t_ns", F.explode(keys).alias("wire"))
        .groupBy("run", "connection", "scope", "wire")
        .agg(
            F.count(F.when(F.col("role") == "publish", 1)).alias("published"),
            F.count(F.when(F.col("role") == "confirm", 1)).alias("confirmed"),
            F.min(F.when(F.col("role") == "publish", F.col("t_ns"))).alias("published_ns"),
            F.min(F.when(F.col("role") == "confirm", F.col("t_ns"))).alias("confirmed_ns"),
        )
    )
