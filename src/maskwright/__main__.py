"""`python -m maskwright`."""

from maskwright.cli import main

if __name__ == "__main__":
    main()
