"""``python -m workspaced`` is the command line."""

from workspaced.cli import main

if __name__ == "__main__":
    main()
