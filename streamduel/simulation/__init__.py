"""Users and rankers that exist only in numbers: published preferences, and click logs from them."""
