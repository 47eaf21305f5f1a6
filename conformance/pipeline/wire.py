"""Publishes and confirms on the wire, key by key: the only place where batches are expanded."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from conformance.checkers.anomaly import ARRIVED, LEFT


def wire_keys(frames: DataFrame) -> DataFrame:
    """One row per run, place, scope and key: how often published and confirmed, and when first.

    The place is the peer, where the protocol tells it, else the connection. Frames without a key count under
    the key null, with all their items.
    """
    publish = (F.col("role") == "publish") & F.col("tap").isin(*ARRIVED)
    confirm = (F.col("role") == "confirm") & F.col("tap").isin(*LEFT)
    places = F.sequence(F.lit(0), F.col("items").cast("int") - 1)
    numbers = F.transform(places, lambda place: (F.col("key_first") + place).cast("string"))
    ranged = F.col("key_first").isNotNull() & (F.col("items") > 0)
    keys = F.when(ranged, numbers).otherwise(F.col("keys"))
    place = F.coalesce(F.nullif(F.col("peer"), F.lit("")), F.col("connection")).alias("place")
    weight = F.when(F.col("wire").isNull(), F.col("items")).otherwise(1)
    is_publish = F.col("role") == "publish"
    return (
        frames.where(publish | confirm)
        .select("run", place, "scope", "role", "t_ns", "items", F.explode_outer(keys).alias("wire"))
        .groupBy("run", "place", "scope", "wire")
        .agg(
            F.sum(F.when(is_publish, weight).otherwise(0)).alias("published"),
            F.sum(F.when(~is_publish, weight).otherwise(0)).alias("confirmed"),
            F.min(F.when(is_publish, F.col("t_ns"))).alias("published_ns"),
            F.min(F.when(~is_publish, F.col("t_ns"))).alias("confirmed_ns"),
        )
    )
