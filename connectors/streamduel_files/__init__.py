"""JSON Lines files and standard input: streamduel's embedded default, without any broker."""

from streamduel_files.connector import FilesConnector

connector = FilesConnector()

__all__ = ["connector"]
