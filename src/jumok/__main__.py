"""`python -m jumok`: the same as `jumok`."""

from jumok.cli import main

if __name__ == "__main__":
    main()
