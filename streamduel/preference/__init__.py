"""Mathematics of preferences: counts, confidence bounds, winners, regret."""
