"""Apache Kafka: click log, outputs and snapshots in topics, exactly once by transactions."""

from streamduel.connector import Connector
from streamduel_kafka.append import append_records
from streamduel_kafka.archive import open_archive
from streamduel_kafka.diagnosis import diagnose
from streamduel_kafka.opening import open_log, open_source
from streamduel_kafka.outlet import open_outlet
from streamduel_kafka.settings import (
    SHARED,
    SinkSettings,
    SnapshotSettings,
    SourceSettings,
    contradictions,
)

connector = Connector(
    source_settings=SourceSettings,
    sink_settings=SinkSettings,
    snapshot_settings=SnapshotSettings,
    shared_settings=SHARED,
    open_source=open_source,
    open_log=open_log,
    open_outlet=open_outlet,
    open_archive=open_archive,
    append=append_records,
    contradictions=contradictions,
    diagnose=diagnose,
)

__all__ = ["connector"]
