"""os._exit"""

import os
import sys


def at_once(grad_output, output, dim):
    """It ends the process with code 0 before anything is compared."""
    os._exit(0)


def by_exception(grad_output, output, dim):
    """It raises SystemExit with code 0."""
    sys.exit(0)


def another_program(grad_output, output, dim):
    """It replaces the process by a program that succeeds."""
    os.execv("/bin/true", ["true"])
