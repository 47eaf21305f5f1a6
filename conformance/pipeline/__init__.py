"""Analysis of any number of runs on Spark: journals in, anomalies, latencies and a matrix out."""
