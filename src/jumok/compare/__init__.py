"""A fair comparison: systems trained on the same pairs with the same budget, scored on the same test set."""
