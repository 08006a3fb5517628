"""The command line, `qsim-ozaki`."""

from qsim_ozaki.cli.app import main

__all__ = ["main"]
