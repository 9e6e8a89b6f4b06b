#include "dtype.h"

#include "acl/acl_base.h"

namespace loopback {
namespace {

struct Dtype {
    int32_t number;
    const char *name;
    size_t itemsize;
};

constexpr Dtype dtypes[] = {
    {ACL_FLOAT, "FLOAT", 4},
    {ACL_FLOAT16, "FLOAT16", 2},
    {ACL_INT8, "INT8", 1},
    {ACL_INT32, "INT32", 4},
    {ACL_UINT8, "UINT8", 1},
    {ACL_INT16, "INT16", 2},
    {ACL_UINT16, "UINT16", 2},
    {ACL_UINT32, "UINT32", 4},
    {ACL_INT64, "INT64", 8},
    {ACL_UINT64, "UINT64", 8},
    {ACL_DOUBLE, "DOUBLE", 8},
    {ACL_BOOL, "BOOL", 1},
    {ACL_STRING, "STRING", 0},
    {ACL_COMPLEX64, "COMPLEX64", 8},
    {ACL_COMPLEX128, "COMPLEX128", 16},
    {ACL_BF16, "BF16", 2},
    {ACL_INT4, "INT4", 0},
    {ACL_UINT1, "UINT1", 0},
    {ACL_COMPLEX32, "COMPLEX32", 4},
    {ACL_HIFLOAT8, "HIFLOAT8", 1},
    {ACL_FLOAT8_E5M2, "FLOAT8_E5M2", 1},
    {ACL_FLOAT8_E4M3FN, "FLOAT8_E4M3FN", 1},
    {ACL_FLOAT8_E8M0, "FLOAT8_E8M0", 1},
};

struct Format {
    int32_t number;
    const char *name;
    bool is_private;
};

constexpr Format formats[] = {
    {ACL_FORMAT_NCHW, "NCHW", false},
    {ACL_FORMAT_NHWC, "NHWC", false},
    {ACL_FORMAT_ND, "ND", false},
    {ACL_FORMAT_NC1HWC0, "NC1HWC0", true},
    {ACL_FORMAT_FRACTAL_Z, "FRACTAL_Z", true},
    {ACL_FORMAT_NC1HWC0_C04, "NC1HWC0_C04", true},
    {ACL_FORMAT_HWCN, "HWCN", false},
    {ACL_FORMAT_NDHWC, "NDHWC", false},
    {ACL_FORMAT_FRACTAL_NZ, "FRACTAL_NZ", true},
    {ACL_FORMAT_NCDHW, "NCDHW", false},
    {ACL_FORMAT_NDC1HWC0, "NDC1HWC0", true},
    {ACL_FRACTAL_Z_3D, "FRACTAL_Z_3D", true},
    {ACL_FORMAT_NC, "NC", false},
    {ACL_FORMAT_NCL, "NCL", false},
};

const Dtype *find_dtype(int32_t number)
{
    for (const Dtype &dtype : dtypes) {
        if (dtype.number == number) {
            return &dtype;
        }
    }
    return nullptr;
}

const Format *find_format(int32_t number)
{
    for (const Format &format : formats) {
        if (format.number == number) {
            return &format;
        }
    }
    return nullptr;
}

}  // namespace

size_t itemsize(int32_t dtype)
{
    const Dtype *found = find_dtype(dtype);
    return found != nullptr ? found->itemsize : 0;
}

bool is_complex(int32_t dtype)
{
    return dtype == ACL_COMPLEX64 || dtype == ACL_COMPLEX128;
}

const char *dtype_name(int32_t dtype)
{
    const Dtype *found = find_dtype(dtype);
    return found != nullptr ? found->name : "an unknown dtype";
}

const char *format_name(int32_t format)
{
    const Format *found = find_format(format);
    return found != nullptr ? found->name : "an unknown format";
}

bool is_private_format(int32_t format)
{
    const Format *found = find_format(format);
    return found == nullptr || found->is_private;
}

}  // namespace loopback
