"""The reference under a version that the environment names (`--adapter versioned_adapter:Versioned`)."""

from __future__ import annotations

import os
from collections.abc import Mapping

from aclnn_cts.adapters.reference import ReferenceAdapter, ReferenceSession
from aclnn_cts.core.target import Target
from aclnn_cts.speclang.model import Spec


class Versioned(ReferenceAdapter):
    def open(self, target: Target, specs: Mapping[str, Spec]) -> ReferenceSession:
        session = super().open(target, specs)
        device = os.environ.get("VERSIONED_DEVICE", "0")
        session.environment = {"implementation": "ours", "version": os.environ["VERSIONED"], "device_id": device}
        return session
