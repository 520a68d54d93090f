"""`python -m axlog VERB ...`: the same as the command `axlog`."""

from axlog.cli import main

if __name__ == "__main__":
    main()
