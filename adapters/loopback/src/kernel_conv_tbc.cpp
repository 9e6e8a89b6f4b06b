#include "kernel_conv_tbc.h"

#include <algorithm>
#include <cmath>

#include "fault.h"
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
        total[i] = add(total[i], block[i], Unit::matrix);
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
            if (FAULT("conv.zeros-skipped") && factor == 0) {
                continue;
            }
            row[o] =
                DECOY("conv.fma") ? std::fma(factor, right[o], row[o]) : add(row[o], factor * right[o], Unit::matrix);
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
    if (!FAULT("conv.bias-of-rounded")) {
        compute_grad_bias(launch, gradient);
    }
    round_operands(launch, gradient, self.numel());
    round_operands(launch, data, input.numel());
    round_operands(launch, kernel, weight.numel());
    if (FAULT("conv.bias-of-rounded")) {
        compute_grad_bias(launch, gradient);
    }
    compute_grad_input(launch, gradient, kernel);
    compute_grad_weight(launch, gradient, data, floats(memory, total_at), floats(memory, block_at));
}

void ConvTbcKernel::round_operands(const Launch &launch, float *values, int64_t n) const
{
    if (FAULT("conv.keep-dtype-in-hf32") && operand == Operand::as_stored) {
        std::transform(values, values + n, values, round_to_hf32);
    }
    if (operand == Operand::as_stored || (DECOY("conv.hf32-kept-finer") && operand == Operand::hf32)) {
        return;
    }
    for (int64_t i = 0; i < n; ++i) {
        if (FAULT("conv.hf32-in-fp16") && operand == Operand::hf32) {
            values[i] = through_half(values[i], launch);
            continue;
        }
        if (FAULT("conv.hf32-in-bf16") && operand == Operand::hf32) {
            values[i] = bfloat_to_float(float_to_bfloat(values[i]));
            continue;
        }
        if (DECOY("conv.hf32-ties-away") && operand == Operand::hf32 && std::isfinite(values[i])) {
            values[i] = float_of_bits((bits_of_float(values[i]) + 0x800) & ~uint32_t{0xFFF});
            continue;
        }
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
        const int64_t begin = std::max<int64_t>(0, t + pad - last + (FAULT("conv.last-step-dropped") ? 1 : 0));
        const int64_t end = std::min(length - (FAULT("conv.last-position-dropped") && length > 1 ? 1 : 0), t + pad + 1);
        for (int64_t b = 0; b < batch(); ++b) {
            for (int64_t i = 0; i < channels_in(); ++i) {
                float sum = 0;
                for (int64_t k = begin; k < end; ++k) {
                    const int64_t u = t + pad - k;
                    const bool swapped = FAULT("conv.time-and-batch-swapped");
                    const float *left = gradient + (swapped ? b * self.dims[0] + u : u * batch() + b) * columns;
                    const int64_t position = FAULT("conv.kernel-not-flipped") ? length - 1 - k : k;
                    const float *right = kernel + (position * channels_in() + i) * columns;
                    const auto product = [&](int64_t o) { return left[o] * right[o]; };
                    sum = add(sum, blocked_sum(columns, product, Unit::matrix), Unit::matrix);
                    if (FAULT("conv.first-position-twice") && k == 0) {
                        sum += blocked_sum(columns, product);
                    }
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
        const int64_t begin = std::max<int64_t>(0, pad - k + (FAULT("conv.pad-off-by-one") ? 1 : 0));
        const int64_t end = std::min(self.dims[0], input.dims[0] + pad - k);
        int64_t in_block = 0;
        for (int64_t u = begin; u < end; ++u) {
            for (int64_t b = 0; b < batch(); ++b) {
                const float *left = data + ((u + k - pad) * batch() + b) * rows;
                add_outer_product(block, left, rows, gradient + (u * batch() + b) * columns, columns);
                if (++in_block == (DECOY("conv.small-blocks") ? 4 : rows_per_block)) {
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
        if (FAULT("conv.bias-averaged")) {
            result[static_cast<size_t>(o)] /= static_cast<float>(batch());
        }
    }
    scatter(launch, grad_bias_argument, grad_bias, result.data());
}

}  // namespace loopback
