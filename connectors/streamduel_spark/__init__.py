"""Counts duels in Spark, for experiments that outgrow a core: `streamduel-spark run CONFIG`.

A Structured Streaming job reads raw records from one Kafka topic, drops duplicates, joins clicks to
impressions, credits with streamduel's own credit functions, and writes `duels` records into the
topic that streamduel reads. docs/scale.md says when to take it, and what it counts.

`decoding` turns raw records into parts of time slices, `bucket` closes slices, `sink` writes what
they counted exactly once, `job` gives the three to Spark, and `command` is the command line.
"""
