from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclnn_cts.core.case import tensors_in
from aclnn_cts.core.errors import UsageError
from aclnn_cts.core.target import Target
from aclnn_cts.generate.strategies import valid_cases
from aclnn_cts.speclang.binding import infer_outputs
from aclnn_cts.speclang.load import load_specs

SPECS = load_specs()


@pytest.mark.mechanism
@pytest.mark.parametrize("operator", list(SPECS))
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_outputs_are_those_of_valid_cases(operator: str, data: st.DataObject) -> None:
    spec = SPECS[operator]
    case = data.draw(valid_cases(spec, Target(product=spec.usual_product)))
    inputs = {name: value for name, value in case.arguments.items() if name in spec.inputs or name not in spec.outputs}
    inferred = infer_outputs(spec, inputs, target=case.target, format="ND")
    assert list(inferred) == [name for name in spec.outputs if name not in spec.inputs]
    for name, tensor in inferred.items():
        given = case.arguments[name]
        if tensor is None:
            assert name not in spec.computed_outputs(case)
            continue
        if given is None:
            continue  # an optional output, which the caller leaves out
        made, wanted = tensors_in(tensor), tensors_in(given)
        assert [item.shape for item in made] == [item.shape for item in wanted]
        # Some documents let the dtype of an output be another than its inputs ask for.
        parameter = spec.parameter(name)
        follows = parameter.dtype_as is not None and case.arguments[parameter.dtype_as] is not None
        is_free = not follows and name not in spec.row_parameters
        assert [item.dtype for item in made] == [item.dtype for item in wanted] or is_free
        assert all(item.data is None for item in made)


def test_a_shape_that_does_not_follow() -> None:
    spec = SPECS["aclnnEmbeddingDenseBackward"]
    with pytest.raises(UsageError, match=r"out: its shape \[numWeights, D\] does not follow from the inputs"):
        infer_outputs(spec, {"numWeights": 4, "grad": None}, target=Target(), format="ND")
