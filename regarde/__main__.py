"""`python -m regarde` is `regarde`."""

from regarde.cli.main import run

run()
