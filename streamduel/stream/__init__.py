"""The fold of a click log into assignments and dead letters, and the loop around it."""
