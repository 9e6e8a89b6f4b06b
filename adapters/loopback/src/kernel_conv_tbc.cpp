#include "kernel_conv_tbc.h"

#include <algorithm>

#include "half.h"
#include "sum.h"
#include "transfer.h"

namespace loopback {
namespace {

enum Argument : size_t {
    self_argument,
    input_argument,
    weight_argument,
    bias_argument,
    grad_input_argument,
    grad_weight_argument,
    grad_bias_argument
};

// Rows of self whose products are summed by themselves before they join the total.
constexpr int64_t rows_per_block = 64;

// Adds block to total and empties it.
void flush(float *total, float *block, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) {
        total[i] += block[i];
        block[i] = 0;
    }
}

// matrix[i, o] += left[i] * right[o]
void add_outer_product(float *matrix, const float *left, int64_t rows, const float *right, int64_t columns)
{
    for (int64_t i = 0; i < rows; ++i) {
        float *row = matrix + i * columns;
        const float factor = left[i];
        for (int64_t o = 0; o < columns; ++o) {
            row[o] += factor * right[o];
        }
    }
}

}  // namespace

void ConvTbcKernel::lay_out()
{
    self_at = layout.add(self.numel());
    input_at = layout.add(input.numel());
    weight_at = layout.add(weight.numel());
    const int64_t one_position = count(weight.dims, 1, 3);
    total_at = layout.add(one_position);
    block_at = layout.add(one_position);
}

void ConvTbcKernel::operator()(const Launch &launch) const
{
    const Span memory = launch.workspace(workspace());
    float *gradient = floats(memory, self_at);
    float *data = floats(memory, input_at);
    float *kernel = floats(memory, weight_at);
    gather(launch, self_argument, self, gradient);
    gather(launch, input_argument, input, data);
    gather(launch, weight_argument, weight, kernel);
    compute_grad_bias(launch, gradient);
    round_operands(launch, gradient, self.numel());
    round_operands(launch, data, input.numel());
    round_operands(launch, kernel, weight.numel());
    compute_grad_input(launch, gradient, kernel);
    compute_grad_weight(launch, gradient, data, floats(memory, total_at), floats(memory, block_at));
}

void ConvTbcKernel::round_operands(const Launch &launch, float *values, int64_t n) const
{
    if (operand == Operand::as_stored) {
        return;
    }
    for (int64_t i = 0; i < n; ++i) {
        values[i] = operand == Operand::hf32 ? round_to_hf32(values[i]) : through_half(values[i], launch);
    }
}

// The matrix unit leaves its result in the format of its operands where that is FP16.
void ConvTbcKernel::compute_grad_input(const Launch &launch, const float *gradient, const float *kernel) const
{
    const int64_t length = weight.dims[0];
    const int64_t last = self.dims[0] - 1;
    const int64_t columns = channels_out();
    std::vector<float> result(static_cast<size_t>(grad_input.numel()));
    float *out = result.data();
    for (int64_t t = 0; t < input.dims[0]; ++t) {
        const int64_t begin = std::max<int64_t>(0, t + pad - last);
        const int64_t end = std::min(length, t + pad + 1);
        for (int64_t b = 0; b < batch(); ++b) {
            for (int64_t i = 0; i < channels_in(); ++i) {
                float sum = 0;
                for (int64_t k = begin; k < end; ++k) {
                    const int64_t u = t + pad - k;
                    const float *left = gradient + (u * batch() + b) * columns;
                    const float *right = kernel + (k * channels_in() + i) * columns;
                    sum += blocked_sum(columns, [&](int64_t o) { return left[o] * right[o]; });
                }
                *out++ = operand == Operand::fp16 ? through_half(sum, launch) : sum;
            }
        }
    }
    scatter(launch, grad_input_argument, grad_input, result.data());
}

void ConvTbcKernel::compute_grad_weight(const Launch &launch, const float *gradient, const float *data, float *total,
                                        float *block) const
{
    const int64_t rows = channels_in();
    const int64_t columns = channels_out();
    const int64_t size = rows * columns;
    std::vector<float> result(static_cast<size_t>(grad_weight.numel()));
    for (int64_t k = 0; k < weight.dims[0]; ++k) {
        std::fill(total, total + size, 0.0F);
        std::fill(block, block + size, 0.0F);
        const int64_t begin = std::max<int64_t>(0, pad - k);
        const int64_t end = std::min(self.dims[0], input.dims[0] + pad - k);
        int64_t in_block = 0;
        for (int64_t u = begin; u < end; ++u) {
            for (int64_t b = 0; b < batch(); ++b) {
                const float *left = data + ((u + k - pad) * batch() + b) * rows;
                add_outer_product(block, left, rows, gradient + (u * batch() + b) * columns, columns);
                if (++in_block == rows_per_block) {
                    flush(total, block, size);
                    in_block = 0;
                }
            }
        }
        flush(total, block, size);
        std::copy(total, total + size, result.data() + k * size);
    }
    scatter(launch, grad_weight_argument, grad_weight, result.data());
}

void ConvTbcKernel::compute_grad_bias(const Launch &launch, const float *gradient) const
{
    const int64_t columns = channels_out();
    const int64_t rows = self.dims[0] * batch();
    std::vector<float> result(static_cast<size_t>(std::max(columns, grad_bias.numel())));
    for (int64_t o = 0; o < columns; ++o) {
        result[static_cast<size_t>(o)] = blocked_sum(rows, [&](int64_t row) { return gradient[row * columns + o]; });
    }
    scatter(launch, grad_bias_argument, grad_bias, result.data());
}

}  // namespace loopback
