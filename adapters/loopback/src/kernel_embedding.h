// The gradient of an embedding table: row w is the sum of the gradients whose index is w, in FP32. The row paddingIdx
// is skipped and stays 0. With scaleGradByFreq a row is multiplied by the reciprocal of the number of its gradients.
#pragma once

#include <vector>

#include "plan.h"

namespace loopback {

struct EmbeddingKernel {
    View grad;
    View indices;
    View out;
    // A row of out, or -1 where no row is padding.
    int64_t padding;
    bool scale;
    Layout layout{};
    uint64_t table_at = 0;
    uint64_t counts_at = 0;

    // Places the FP32 table and, for scaling, the counts in the workspace.
    void lay_out();
    uint64_t workspace() const { return layout.size(); }
    void operator()(const Launch &launch) const;

private:
    int64_t rows() const { return out.dims[0]; }
    int64_t columns() const { return out.dims[1]; }

    void accumulate(const Launch &launch, float *table, const std::vector<int64_t> &rows_of_grad) const;
    void scale_rows(float *table, uint32_t *counts, const std::vector<int64_t> &rows_of_grad) const;
};

}  // namespace loopback
