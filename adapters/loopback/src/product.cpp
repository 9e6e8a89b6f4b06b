#include "product.h"

#include <cstdlib>
#include <cstring>

#include "message.h"

namespace loopback {
namespace {

constexpr const char *variable = "ACLNN_LOOPBACK_SOC";
constexpr const char *default_name = "Ascend910B3";

constexpr Soc chips[] = {
    {"Ascend910B1", Product::a2, 2201, 24, 24, 48},
    {"Ascend910B2", Product::a2, 2201, 24, 24, 48},
    {"Ascend910B2C", Product::a2, 2201, 24, 24, 48},
    {"Ascend910B3", Product::a2, 2201, 20, 20, 40},
    {"Ascend910B4", Product::a2, 2201, 20, 20, 40},
    {"Ascend910B4-1", Product::a2, 2201, 20, 20, 40},
    {"Ascend910A", Product::training, 1001, 32, 32, 0},
    {"Ascend910B", Product::training, 1001, 30, 30, 0},
    {"Ascend910ProA", Product::training, 1001, 32, 32, 0},
    {"Ascend910ProB", Product::training, 1001, 30, 30, 0},
    {"Ascend910PremiumA", Product::training, 1001, 32, 32, 0},
    {"Ascend310P1", Product::inference, 2002, 10, 10, 8},
    {"Ascend310P3", Product::inference, 2002, 8, 8, 7},
    {"Ascend310P5", Product::inference, 2002, 8, 8, 7},
    {"Ascend310P7", Product::inference, 2002, 8, 8, 7},
};

const char *chosen_name()
{
    const char *name = std::getenv(variable);
    return name != nullptr && *name != '\0' ? name : default_name;
}

const Soc *find_chip(const char *name)
{
    for (const Soc &chip : chips) {
        if (std::strcmp(chip.name, name) == 0) {
            return &chip;
        }
    }
    return nullptr;
}

}  // namespace

const Soc *soc()
{
    static const Soc *const chosen = find_chip(chosen_name());
    if (chosen == nullptr) {
        report(
            text("%s=%s: not a chip that this software device can stand in for; expected a full name such as %s, "
                 "Ascend910A or Ascend310P3",
                 variable, chosen_name(), default_name));
    }
    return chosen;
}

}  // namespace loopback
