#include "kernel_gru.h"

#include <utility>

#include "sum.h"
#include "transfer.h"

namespace loopback {
namespace {

using Floats = std::vector<float>;

enum Saved : size_t { reset_gate, update_gate, candidate, linear, state };

Floats read(const Launch &launch, const Slot &slot)
{
    return gathered(launch, slot.argument, slot.view);
}

void write(const Launch &launch, const Slot &slot, const Floats &values)
{
    scatter(launch, slot.argument, slot.view, values.data());
}

// A tensor of steps and batch with the steps first.
Slot time_first(const Slot &slot, bool batch_first)
{
    Slot changed = slot;
    if (batch_first) {
        std::swap(changed.view.dims[0], changed.view.dims[1]);
        std::swap(changed.view.strides[0], changed.view.strides[1]);
    }
    return changed;
}

// left^T right of two matrices with as many rows.
Floats transposed_product(const Floats &left, int64_t width, const Floats &right, int64_t other, int64_t rows)
{
    Floats product(static_cast<size_t>(width * other));
    for (int64_t i = 0; i < width; ++i) {
        for (int64_t j = 0; j < other; ++j) {
            product[static_cast<size_t>(i * other + j)] = blocked_sum(rows, [&](int64_t row) {
                return left[static_cast<size_t>(row * width + i)] * right[static_cast<size_t>(row * other + j)];
            });
        }
    }
    return product;
}

Floats column_sums(const Floats &values, int64_t width, int64_t rows)
{
    Floats sums(static_cast<size_t>(width));
    for (int64_t i = 0; i < width; ++i) {
        sums[static_cast<size_t>(i)] =
            blocked_sum(rows, [&](int64_t row) { return values[static_cast<size_t>(row * width + i)]; });
    }
    return sums;
}

}  // namespace

void GruKernel::operator()(const Launch &launch) const
{
    const int64_t rows = steps * batch;
    const int64_t gates = 3 * hidden;
    const auto plane = static_cast<size_t>(batch * hidden);
    const Floats last = read(launch, dh);
    const Floats first = read(launch, hx);
    Floats before(first.size());
    Floats above = read(launch, time_first(dy, batch_first));
    for (int64_t layer = layers - 1; layer >= 0; --layer) {
        const int64_t width = layer == 0 ? features : directions * hidden;
        Floats x(static_cast<size_t>(rows * width));
        if (layer == 0) {
            x = read(launch, time_first(input, batch_first));
        } else {
            for (int64_t direction = 0; direction < directions; ++direction) {
                const Floats below = read(launch, saved[state][static_cast<size_t>((layer - 1) * directions + direction)]);
                for (int64_t row = 0; row < rows; ++row) {
                    for (int64_t j = 0; j < hidden; ++j) {
                        x[static_cast<size_t>(row * width + direction * hidden + j)] =
                            below[static_cast<size_t>(row * hidden + j)];
                    }
                }
            }
        }
        Floats onward(x.size());
        for (int64_t direction = 0; direction < directions; ++direction) {
            const auto cell = static_cast<size_t>(layer * directions + direction);
            const Floats w_ih = read(launch, params[cell * each]);
            const Floats w_hh = read(launch, params[cell * each + 1]);
            Floats kept[5];
            for (size_t number = 0; number < 5; ++number) {
                kept[number] = read(launch, saved[number][cell]);
            }
            Floats g(last.begin() + static_cast<std::ptrdiff_t>(cell * plane),
                     last.begin() + static_cast<std::ptrdiff_t>((cell + 1) * plane));
            Floats lin_ih(static_cast<size_t>(rows * gates));
            Floats lin_hh(lin_ih.size());
            Floats previous(static_cast<size_t>(rows * hidden));
            for (int64_t place = steps - 1; place >= 0; --place) {
                const int64_t t = direction == 0 ? place : steps - 1 - place;
                const int64_t earlier = direction == 0 ? t - 1 : t + 1;
                Floats through(plane);
                for (int64_t b = 0; b < batch; ++b) {
                    for (int64_t j = 0; j < hidden; ++j) {
                        const int64_t row = t * batch + b;
                        const auto at = static_cast<size_t>(row * hidden + j);
                        const auto here = static_cast<size_t>(b * hidden + j);
                        const float r = kept[reset_gate][at];
                        const float z = kept[update_gate][at];
                        const float n = kept[candidate][at];
                        const float p = place == 0 ? first[cell * plane + here]
                                                   : kept[state][static_cast<size_t>((earlier * batch + b) * hidden + j)];
                        const float total =
                            g[here] + above[static_cast<size_t>(row * directions * hidden + direction * hidden + j)];
                        const float dn = total * (1.0F - z) * (1.0F - n * n);
                        const float dr = dn * kept[linear][at] * r * (1.0F - r);
                        const float dz = total * (p - n) * z * (1.0F - z);
                        const auto line = static_cast<size_t>(row * gates + j);
                        const auto next = static_cast<size_t>(hidden);
                        lin_ih[line] = lin_hh[line] = dz;
                        lin_ih[line + next] = lin_hh[line + next] = dr;
                        lin_ih[line + 2 * next] = dn;
                        lin_hh[line + 2 * next] = dn * r;
                        previous[at] = p;
                        through[here] = total * z;
                    }
                }
                for (int64_t b = 0; b < batch; ++b) {
                    for (int64_t j = 0; j < hidden; ++j) {
                        const auto here = static_cast<size_t>(b * hidden + j);
                        g[here] = through[here] + blocked_sum(gates, [&](int64_t k) {
                                      return lin_hh[static_cast<size_t>((t * batch + b) * gates + k)]
                                             * w_hh[static_cast<size_t>(k * hidden + j)];
                                  });
                    }
                }
            }
            for (size_t here = 0; here < plane; ++here) {
                before[cell * plane + here] = g[here];
            }
            for (int64_t row = 0; row < rows; ++row) {
                for (int64_t i = 0; i < width; ++i) {
                    onward[static_cast<size_t>(row * width + i)] += blocked_sum(gates, [&](int64_t k) {
                        return lin_ih[static_cast<size_t>(row * gates + k)] * w_ih[static_cast<size_t>(k * width + i)];
                    });
                }
            }
            const Slot *gradients = &dparams[cell * each];
            write(launch, gradients[0], transposed_product(lin_ih, gates, x, width, rows));
            write(launch, gradients[1], transposed_product(lin_hh, gates, previous, hidden, rows));
            if (each == 4) {
                write(launch, gradients[2], column_sums(lin_ih, gates, rows));
                write(launch, gradients[3], column_sums(lin_hh, gates, rows));
            }
        }
        above = std::move(onward);
    }
    write(launch, time_first(dx, batch_first), above);
    write(launch, dh_prev, before);
}

}  // namespace loopback
