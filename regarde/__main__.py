"""`python -m regarde` is `regarde`, without the working directory that Python puts first on the path for -m."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # before anything is imported: a file there may have the name of any module

from regarde.cli.main import run

run()
