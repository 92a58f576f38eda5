"""`streamduel demo`: simulated users, a search service and streamduel in one process."""
