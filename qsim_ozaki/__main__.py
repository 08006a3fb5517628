"""``python -m qsim_ozaki`` is the command line.

In: arguments. Out: what ``qsim-ozaki`` prints. It may not do anything else.
"""

from qsim_ozaki.cli import main

main()
