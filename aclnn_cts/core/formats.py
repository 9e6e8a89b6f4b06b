"""The aclFormat enumeration: names of `acl_base.h` without `ACL_FORMAT_`."""

from __future__ import annotations

from types import MappingProxyType

__all__ = ["FORMATS", "PRIVATE_FORMATS"]

FORMATS: MappingProxyType[str, int] = MappingProxyType(
    {
        "UNDEFINED": -1,
        "NCHW": 0,
        "NHWC": 1,
        "ND": 2,
        "NC1HWC0": 3,
        "FRACTAL_Z": 4,
        "NC1HWC0_C04": 12,
        "HWCN": 16,
        "NDHWC": 27,
        "FRACTAL_NZ": 29,
        "NCDHW": 30,
        "NDC1HWC0": 32,
        "FRACTAL_Z_3D": 33,
        "NC": 35,
        "NCL": 47,
    }
)

PRIVATE_FORMATS: frozenset[str] = frozenset(
    {"NC1HWC0", "FRACTAL_Z", "NC1HWC0_C04", "FRACTAL_NZ", "NDC1HWC0", "FRACTAL_Z_3D"}
)
"""Formats whose memory is tiled for the device: a strided view of the host cannot stand for them."""
