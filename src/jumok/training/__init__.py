"""Training: from sentence pairs to a model, by a loop that can be killed at any moment and reports events."""
