"""Search: greedy, sampling and beam search over any Stepper."""
