"""The command line: thin faces of the engine, each command in a module of its own, imported when it is called."""
