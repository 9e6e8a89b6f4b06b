from tests.cli.conftest import call_command

__all__ = ["call_command"]
