"""What a finished or running click log says, whoever wrote it: `streamduel analyze`."""
