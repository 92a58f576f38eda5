"""Building interleaved lists, and crediting the clicks on them to a side."""
