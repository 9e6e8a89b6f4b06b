"""The backward calls of a training: `watch` checks them as they are made, or keeps them for `run --recorded`.

May import `core`, `generate`, `candidates` and the bindings of adapters; torch where a training is watched alone.
Start reading at `watch`, then `inverse` (which call of torch is which operator) and `calls` (what is kept).
"""
