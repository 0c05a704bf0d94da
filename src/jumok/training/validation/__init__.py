"""Validation: the loss and scores of a model on held-out sentences, and snapshots for the page."""
