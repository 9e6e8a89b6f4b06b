"""Test cases from other tools: ATK.

May import `generate` and what is below it. Start reading at `import_atk`.
"""
