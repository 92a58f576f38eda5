"""The status page: what is known of the experiments, for people with a browser."""

from streamduel.monitoring.page.pages import PAGE_HEADERS, Pages

__all__ = ["PAGE_HEADERS", "Pages"]
