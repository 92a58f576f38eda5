"""Counts duels in Spark, for experiments that outgrow a core: `streamduel-spark run CONFIG`.

A Structured Streaming job reads raw records from one Kafka topic, drops duplicates, joins clicks to
impressions, credits with streamduel's own credit functions, and writes `duels` records into the
topic that streamduel reads. docs/scale.md says when to use the job, and what it counts.

`decoding` turns raw records into parts of time slices, `bucket` closes slices, `sink` writes their
counts exactly once, `job` runs the three in Spark, and `command` is the command line.
"""
