"""The command line: one module a command, imported when the command is called.

May import everything but `adapters`, `oracles`, `judgement` and `plugin`. Start reading at `main`.
"""
