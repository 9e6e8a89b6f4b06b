"""One call from recipe to verdict: executor, oracle, judging, second opinion, settings.

May import `core` to `judgement`, `oracles`, `sandbox`. Start reading at `executor`, then `judging`.
"""
