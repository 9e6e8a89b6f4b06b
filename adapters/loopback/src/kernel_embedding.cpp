#include "kernel_embedding.h"

#include <algorithm>

#include "fault.h"
#include "message.h"
#include "transfer.h"

namespace loopback {
namespace {

enum Argument : size_t { grad_argument, indices_argument, out_argument };

}  // namespace

void EmbeddingKernel::lay_out()
{
    table_at = layout.add(out.numel());
    counts_at = layout.add(scale ? rows() : 0, sizeof(uint32_t));
}

void EmbeddingKernel::operator()(const Launch &launch) const
{
    const Span memory = launch.workspace(workspace());
    float *table = floats(memory, table_at);
    const std::vector<int64_t> rows_of_grad = gathered_indices(launch, indices_argument, indices);
    accumulate(launch, table, rows_of_grad);
    if (scale) {
        scale_rows(table, reinterpret_cast<uint32_t *>(memory.bytes + counts_at), rows_of_grad);
    }
    scatter(launch, out_argument, out, table);
}

// An index outside the table would be written outside its memory, which the device notices.
void EmbeddingKernel::accumulate(const Launch &launch, float *table, const std::vector<int64_t> &rows_of_grad) const
{
    if (!FAULT("embedding.table-not-cleared")) {
        std::fill(table, table + rows() * columns(), 0.0F);
    }
    const std::vector<float> gradients = gathered(launch, grad_argument, grad);
    const float *gradient = gradients.data();
    for (const int64_t row : rows_of_grad) {
        if (row < 0 || row >= rows()) {
            throw Fault{ACL_ERROR_RT_AICORE_EXCEPTION,
                        text("row %lld of a table of %lld was to be written", static_cast<long long>(row),
                             static_cast<long long>(rows()))};
        }
        if (row != padding) {
            float *sums = table + row * columns();
            for (int64_t column = 0; column < columns(); ++column) {
                sums[column] += gradient[column];
            }
        }
        gradient += columns();
    }
}

void EmbeddingKernel::scale_rows(float *table, uint32_t *counts, const std::vector<int64_t> &rows_of_grad) const
{
    std::fill(counts, counts + rows(), 0U);
    for (const int64_t row : rows_of_grad) {
        ++counts[row];
    }
    for (int64_t row = 0; row < rows(); ++row) {
        if (counts[row] > 1 && row != padding) {
            const float factor = 1.0F / static_cast<float>(counts[row]);
            for (int64_t column = 0; column < columns(); ++column) {
                table[row * columns() + column] *= factor;
            }
        }
    }
}

}  // namespace loopback
