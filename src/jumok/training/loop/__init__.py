"""The training loop and its parts: updates, schedule, optimiser, checkpoints, detectors."""
