"""What is measured, and how; RESULTS.md has the figures."""
