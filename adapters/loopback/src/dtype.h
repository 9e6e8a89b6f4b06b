// Facts about dtypes and formats, by their numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace loopback {

// Bytes of an element; 0 for a dtype without whole bytes or a number that is none.
size_t itemsize(int32_t dtype);
bool is_complex(int32_t dtype);
const char *dtype_name(int32_t dtype);
const char *format_name(int32_t format);
// Formats whose memory is tiled for the device.
bool is_private_format(int32_t format);

}  // namespace loopback
