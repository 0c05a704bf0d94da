"""`python -m jumok.training.member`: a further process of a team. `team.py` starts it."""

import sys

from jumok.training.team import take_part

if __name__ == "__main__":
    take_part(sys.stdin.buffer, sys.stdout.buffer)
