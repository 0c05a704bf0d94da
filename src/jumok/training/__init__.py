"""Training: settings from the corpus, a loop that can be killed at any moment, events to follow it."""
