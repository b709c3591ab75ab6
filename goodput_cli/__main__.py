"""`python -m goodput_cli` is `goodput`."""

from goodput_cli.cli.main import main

if __name__ == "__main__":
    main()
