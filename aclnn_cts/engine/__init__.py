"""What runs trials and keeps what came of them: promises, plan, processes, store, waivers, replay."""

from __future__ import annotations
