"""The mathematics that the policies share: counts, confidence bounds, winners, regret."""
