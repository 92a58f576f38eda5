"""streamduel's tests; they mirror the package."""
