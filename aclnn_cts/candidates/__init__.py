"""Implementations judged by a function call: `check` values, `cases` to call with, `expected` values, `judge` a kernel.

May import `core` to `trials`. Start reading at `check`, then `judge`; `public` says what `aclnn_cts` gives of it.
"""
