"""From run directories to what an acceptance report shows (`core.acceptance`): counted in one pass, never judged."""
