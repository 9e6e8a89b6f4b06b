#include "kernel_embedding.h"

#include <algorithm>

#include "fault.h"
#include "half.h"
#include "message.h"
#include "sum.h"
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
    std::vector<int64_t> rows_of_grad = gathered_indices(launch, indices_argument, indices);
    if (FAULT("embedding.index-in-eight-bits")) {
        std::transform(rows_of_grad.begin(), rows_of_grad.end(), rows_of_grad.begin(),
                       [](int64_t row) { return row & 0x7F; });
    }
    if (FAULT("embedding.last-row-off-by-one")) {
        std::replace(rows_of_grad.begin(), rows_of_grad.end(), rows() - 1, std::max<int64_t>(rows() - 2, 0));
    }
    accumulate(launch, table, rows_of_grad);
    if (scale) {
        scale_rows(table, reinterpret_cast<uint32_t *>(memory.bytes + counts_at), rows_of_grad);
    }
    scatter(launch, out_argument, out, table);
}

// As a decoy does it: the last gradient first.
void EmbeddingKernel::accumulate_reversed(float *table, const std::vector<float> &gradients,
                                          const std::vector<int64_t> &rows_of_grad) const
{
    for (size_t place = rows_of_grad.size(); place-- > 0;) {
        for (int64_t column = 0; rows_of_grad[place] != padding && column < columns(); ++column) {
            table[rows_of_grad[place] * columns() + column] +=
                gradients[place * static_cast<size_t>(columns()) + static_cast<size_t>(column)];
        }
    }
}

// As a decoy does it: in twice the precision that is asked for.
void EmbeddingKernel::accumulate_in_double(float *table, const std::vector<float> &gradients,
                                           const std::vector<int64_t> &rows_of_grad) const
{
    std::vector<double> sums(static_cast<size_t>(rows() * columns()));
    const float *gradient = gradients.data();
    for (const int64_t row : rows_of_grad) {
        for (int64_t column = 0; row != padding && column < columns(); ++column) {
            sums[static_cast<size_t>(row * columns() + column)] += static_cast<double>(gradient[column]);
        }
        gradient += columns();
    }
    std::transform(sums.begin(), sums.end(), table, [](double sum) { return static_cast<float>(sum); });
}

// An index outside the table would be written outside its memory, which the device notices.
void EmbeddingKernel::accumulate(const Launch &launch, float *table, const std::vector<int64_t> &rows_of_grad) const
{
    if (!FAULT("embedding.table-not-cleared")) {
        std::fill(table, table + rows() * columns(), 0.0F);
    }
    const std::vector<float> gradients = gathered(launch, grad_argument, grad);
    const float *gradient = gradients.data();
    if (DECOY("embedding.reversed-order")) {
        accumulate_reversed(table, gradients, rows_of_grad);
        return;
    }
    if (DECOY("embedding.sum-in-double")) {
        accumulate_in_double(table, gradients, rows_of_grad);
        return;
    }
    const bool by_columns = FAULT("embedding.square-transposed");
    const auto count_of_rows = static_cast<int64_t>(rows_of_grad.size());
    int64_t place = 0;
    for (const int64_t row : rows_of_grad) {
        const int64_t number = place++;
        if (row < 0 || row >= rows()) {
            throw Fault{ACL_ERROR_RT_AICORE_EXCEPTION,
                        text("row %lld of a table of %lld was to be written", static_cast<long long>(row),
                             static_cast<long long>(rows()))};
        }
        if (row != padding || FAULT("embedding.padding-ignored")) {
            float *sums = table + row * columns();
            const int64_t last =
                FAULT("embedding.columns-tail-dropped") && columns() > 8 ? columns() / 8 * 8 : columns();
            for (int64_t column = 0; column < last; ++column) {
                const float term =
                    by_columns ? gradients[static_cast<size_t>(column * count_of_rows + number)] : gradient[column];
                if (FAULT("embedding.last-one-wins")) {
                    sums[column] = term;
                } else if (FAULT("embedding.negated")) {
                    sums[column] -= term;
                } else if (FAULT("embedding.sum-in-half") && out.dtype != ACL_FLOAT) {
                    sums[column] = half_to_float(float_to_half(sums[column] + term));
                } else {
                    sums[column] = add(sums[column], term);
                }
            }
        }
        gradient += columns();
    }
}

void EmbeddingKernel::scale_rows(float *table, uint32_t *counts, const std::vector<int64_t> &rows_of_grad) const
{
    std::fill(counts, counts + rows(), 0U);
    int64_t before = -1;
    for (const int64_t row : rows_of_grad) {
        counts[row] += FAULT("embedding.neighbours-counted-once") && row == before ? 0 : 1;
        before = row;
    }
    for (int64_t row = 0; row < rows(); ++row) {
        if ((counts[row] > 1 || FAULT("embedding.empty-rows-divided")) && row != padding) {
            float factor = 1.0F / static_cast<float>(counts[row] + (FAULT("embedding.count-off-by-one") ? 1 : 0));
            if (FAULT("embedding.multiplied-by-count")) {
                factor = static_cast<float>(counts[row]);
            } else if (FAULT("embedding.reciprocal-in-half")) {
                factor = half_to_float(float_to_half(factor));
            }
            for (int64_t column = 0; column < columns(); ++column) {
                float &sum = table[row * columns() + column];
                sum = DECOY("embedding.divided") ? sum / static_cast<float>(counts[row]) : sum * factor;
            }
        }
    }
}

}  // namespace loopback
