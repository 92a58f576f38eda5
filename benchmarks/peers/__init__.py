"""The same job on the same broker: streamduel and the stream processors that a user could take."""
