"""Latencies, the matrix, and how the harness fared."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

#: Shares of the messages for which `quantiles_ms` gives the latency.
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
CLIENT = ("client", "client_version", "protocol", "variant")


def latencies(found: DataFrame, wire: DataFrame, runs: DataFrame) -> DataFrame:
    """Latency quantiles in milliseconds, exact to a microsecond, per client, protocol, variant and scenario.

    ``publish-confirm`` and ``publish-deliver`` are what the client saw, from its own call on;
    ``wire-confirm`` is what the fake took, from the publish frame's arrival to the confirm's departure.
    Rows with an empty scenario are over all scenarios.
    """
    seen = found.select(
        "run",
        F.explode(
            F.array(
                _span("publish-confirm", F.col("sent_ns"), F.col("acked_ns")),
                _span("publish-deliver", F.col("sent_ns"), F.col("delivered_ns")),
            )
        ).alias("span"),
    )
    fake = wire.where("wire is not null").select(
        "run", _span("wire-confirm", F.col("published_ns"), F.col("confirmed_ns")).alias("span")
    )
    cell = (*CLIENT, "scenario", "measure")
    return (
        seen.unionByName(fake)
        .select("run", "span.*")
        .where("ns >= 0")
        .join(F.broadcast(runs.select("run", *CLIENT, "scenario")), "run")
        .withColumn("scenario", F.explode(F.array_distinct(F.array("scenario", F.lit("")))))
        .groupBy(*cell)
        .agg(
            F.count("*").alias("messages"),
            # whole microseconds, because the aggregation keeps every distinct value
            F.percentile(F.round(F.col("ns") / 1000), F.array(*map(F.lit, QUANTILES))).alias("us"),
        )
        .select(*cell, "messages", F.transform("us", lambda us: us / 1000).alias("quantiles_ms"))
    )


def matrix(runs: DataFrame, anomalies: DataFrame) -> DataFrame:
    """One row per client, scenario and variant: runs, verdicts, and anomalies that are not allowed."""
    bad = anomalies.where("not allowed").groupBy("run").agg(F.count("*").alias("found"))
    verdicts = F.map_from_entries(
        F.transform(
            F.array_distinct(F.collect_list("verdict")),
            lambda verdict: F.struct(
                verdict, F.size(F.filter(F.collect_list("verdict"), lambda other: other == verdict))
            ),
        )
    )
    return (
        runs.join(bad, "run", "left")
        .groupBy(*CLIENT, "scenario")
        .agg(
            F.count("*").alias("runs"),
            F.count(F.when(~F.col("ended"), 1)).alias("broken_off"),
            verdicts.alias("verdicts"),
            F.coalesce(F.sum("found"), F.lit(0)).alias("anomalies"),
        )
    )


def harness(metrics: DataFrame, runs: DataFrame) -> DataFrame:
    """One row per client, scenario and metric: samples, worst and mean."""
    named = metrics.join(F.broadcast(runs.select("run", *CLIENT, "scenario")), "run")
    return named.groupBy(*CLIENT, "scenario", "name").agg(
        F.count("*").alias("samples"), F.max("value").alias("worst"), F.avg("value").alias("mean")
    )


def _span(measure: str, begin: Column, end: Column) -> Column:
    return F.struct(F.lit(measure).alias("measure"), (end - begin).alias("ns"))
