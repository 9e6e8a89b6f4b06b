"""The aclnnStatus values, by the names of the operator library's return code list."""

from __future__ import annotations

from types import MappingProxyType

SUCCESS = "ACLNN_SUCCESS"
ANY_ERROR = "ACLNN_ERR_*"
"""Stands for every status but success where a document promises an error without naming its code."""

STATUSES: MappingProxyType[str, int] = MappingProxyType(
    {
        SUCCESS: 0,
        "ACLNN_ERR_PARAM_NULLPTR": 161001,
        "ACLNN_ERR_PARAM_INVALID": 161002,
        "ACLNN_ERR_RUNTIME_ERROR": 361001,
        "ACLNN_ERR_INNER": 561000,
        "ACLNN_ERR_INNER_INFERSHAPE_ERROR": 561001,
        "ACLNN_ERR_INNER_TILING_ERROR": 561002,
        "ACLNN_ERR_INNER_FIND_KERNEL_ERROR": 561003,
        "ACLNN_ERR_INNER_CREATE_EXECUTOR": 561101,
        "ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR": 561102,
        "ACLNN_ERR_INNER_NULLPTR": 561103,
        "ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE": 561104,
        "ACLNN_ERR_INNER_KEY_CONFILICT": 561105,
        "ACLNN_ERR_INNER_INVALID_IMPL_MODE": 561106,
        "ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND": 561107,
        "ACLNN_ERR_INNER_LOAD_JSON_FAILED": 561108,
        "ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND": 561109,
        "ACLNN_ERR_INNER_JSON_FORMAT_INVALID": 561110,
        "ACLNN_ERR_INNER_JSON_DTYPE_INVALID": 561111,
        "ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND": 561112,
        "ACLNN_ERR_INNER_OP_FILE_INVALID": 561113,
        "ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND": 561114,
        "ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH": 561115,
    }
)

_NAMES = {value: name for name, value in STATUSES.items()}


def status_name(value: int) -> str:
    """The header's name of a status, `ACLNN_ERR_<value>` for one that the list does not hold."""
    return _NAMES.get(value, f"ACLNN_ERR_{value}")


def conforms(status: str, allowed: tuple[str, ...]) -> bool:
    """Whether a returned status is among the promised ones; `ACLNN_ERR_*` admits every error."""
    return status in allowed or (ANY_ERROR in allowed and status != SUCCESS)
