"""The status page."""

from streamduel.monitoring.page.pages import PAGE_HEADERS, Pages

__all__ = ["PAGE_HEADERS", "Pages"]
