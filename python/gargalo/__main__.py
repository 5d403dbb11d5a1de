"""`python -m gargalo` is the command `gargalo`."""

from gargalo.cli.app import main

if __name__ == "__main__":
    main()
