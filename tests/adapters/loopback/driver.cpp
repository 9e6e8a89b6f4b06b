// Drives the software device through its whole C interface, under the sanitizers. Exit code 0 where all holds.
//
// ACLNN_LOOPBACK_SOC chooses the chip; what follows from it is expected accordingly. ACLNN_LOOPBACK_LATENCY_US should
// be long, so that a result that is read too early is missing for certain.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "aclnnop/aclnn_embedding_dense_backward.h"
#include "aclnnop/aclnn_rms_norm_grad.h"
#include "aclnnop/aclnn_softmax_backward.h"
#include "aclnnop/aclnn_upsample_nearest_exact1d_backward.h"

namespace {

constexpr aclnnStatus null_pointer = 161001;
constexpr aclnnStatus invalid = 161002;
constexpr aclnnStatus runtime_failed = 361001;
constexpr aclnnStatus inner = 561000;
constexpr aclnnStatus tiling = 561002;
constexpr aclnnStatus no_kernel = 561003;
constexpr aclnnStatus inner_null = 561103;

[[noreturn]] void die(const char *file, int line, const std::string &what)
{
    const char *message = aclGetRecentErrMsg();
    std::fprintf(stderr, "%s:%d: %s\n%s", file, line, what.c_str(), message != nullptr ? message : "");
    std::_Exit(1);
}

#define EXPECT(condition)                        \
    do {                                         \
        if (!(condition)) {                      \
            die(__FILE__, __LINE__, #condition); \
        }                                        \
    } while (0)

#define EXPECT_IS(expression, expected)                                                                          \
    do {                                                                                                         \
        const auto got = (expression);                                                                           \
        if (got != (expected)) {                                                                                 \
            die(__FILE__, __LINE__, std::string(#expression " is ") + std::to_string(got) + ", not " #expected); \
        }                                                                                                        \
    } while (0)

bool is_a2()
{
    return std::string(aclrtGetSocName()) == "Ascend910B3";
}

bool is_training()
{
    return std::string(aclrtGetSocName()) == "Ascend910A";
}

using Dims = std::vector<int64_t>;

// Device memory that holds host values.
class Buffer {
public:
    explicit Buffer(size_t bytes) : bytes_(bytes)
    {
        EXPECT_IS(aclrtMalloc(&address_, bytes, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    }
    template <class T>
    explicit Buffer(const std::vector<T> &values) : Buffer(values.size() * sizeof(T))
    {
        EXPECT_IS(aclrtMemcpy(address_, bytes_, values.data(), bytes_, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    }
    ~Buffer()
    {
        if (address_ != nullptr) {
            EXPECT_IS(aclrtFree(address_), ACL_SUCCESS);
        }
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    void *address() const { return address_; }
    // The device was reset: nothing is left to free.
    void forget() { address_ = nullptr; }

    template <class T>
    std::vector<T> read() const
    {
        std::vector<T> values(bytes_ / sizeof(T));
        EXPECT_IS(aclrtMemcpy(values.data(), bytes_, address_, bytes_, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
        return values;
    }

private:
    void *address_ = nullptr;
    size_t bytes_;
};

// A descriptor; contiguous unless strides are given.
class Tensor {
public:
    Tensor(const Dims &dims, aclDataType dtype, void *address, aclFormat format = ACL_FORMAT_ND)
        : tensor_(
              aclCreateTensor(dims.data(), dims.size(), dtype, nullptr, 0, format, dims.data(), dims.size(), address))
    {
        EXPECT(tensor_ != nullptr);
    }
    Tensor(const Dims &dims, const Dims &strides, int64_t offset, const Dims &storage, aclDataType dtype, void *address)
        : tensor_(aclCreateTensor(dims.data(), dims.size(), dtype, strides.data(), offset, ACL_FORMAT_ND,
                                  storage.data(), storage.size(), address))
    {
        EXPECT(tensor_ != nullptr);
    }
    ~Tensor() { EXPECT_IS(aclDestroyTensor(tensor_), 0); }
    Tensor(const Tensor &) = delete;
    Tensor &operator=(const Tensor &) = delete;

    operator aclTensor *() const { return tensor_; }

private:
    aclTensor *tensor_;
};

class IntArray {
public:
    explicit IntArray(const Dims &values) : array_(aclCreateIntArray(values.data(), values.size())) {}
    ~IntArray() { EXPECT_IS(aclDestroyIntArray(array_), 0); }
    IntArray(const IntArray &) = delete;
    IntArray &operator=(const IntArray &) = delete;

    operator aclIntArray *() const { return array_; }

private:
    aclIntArray *array_;
};

aclrtStream make_stream()
{
    aclrtStream stream = nullptr;
    EXPECT_IS(aclrtCreateStream(&stream), ACL_SUCCESS);
    return stream;
}

using PhaseTwo = aclnnStatus (*)(void *, uint64_t, aclOpExecutor *, aclrtStream);

// Phase two with a workspace of exactly the size asked for, and the wait for its end.
void finish(PhaseTwo phase_two, uint64_t workspace_size, aclOpExecutor *executor, aclrtStream stream)
{
    void *workspace = nullptr;
    if (workspace_size > 0) {
        EXPECT_IS(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    }
    EXPECT_IS(phase_two(workspace, workspace_size, executor, stream), 0);
    EXPECT_IS(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    if (workspace != nullptr) {
        EXPECT_IS(aclrtFree(workspace), ACL_SUCCESS);
    }
}

uint16_t half(float value)
{
    // Enough for the numbers of this driver: exact ones within the normal range.
    int exponent = 0;
    const float fraction = std::frexp(std::fabs(value), &exponent);
    if (value == 0) {
        return 0;
    }
    const auto mantissa = static_cast<unsigned>(fraction * 2048.0F) & 0x3FFU;
    const unsigned sign = value < 0 ? 0x8000U : 0;
    return static_cast<uint16_t>(sign | static_cast<unsigned>(exponent + 14) << 10 | mantissa);
}

std::vector<uint16_t> halves(const std::vector<float> &values)
{
    std::vector<uint16_t> result;
    for (const float value : values) {
        result.push_back(half(value));
    }
    return result;
}

void check_life_cycle_before()
{
    EXPECT_IS(aclrtSetDevice(0), ACL_ERROR_UNINITIALIZE);
    EXPECT_IS(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
    EXPECT_IS(aclInit(nullptr), ACL_SUCCESS);
    EXPECT_IS(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);
    EXPECT_IS(aclnnInit(nullptr), 0);
    aclrtStream stream = nullptr;
    EXPECT_IS(aclrtCreateStream(&stream), ACL_ERROR_RT_CONTEXT_NULL);
    void *address = nullptr;
    EXPECT_IS(aclrtMalloc(&address, 16, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL);
    EXPECT_IS(aclrtSetDevice(7), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_IS(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_IS(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_IS(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_IS(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_INVALID_DEVICEID);
    EXPECT_IS(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
    const char *message = aclGetRecentErrMsg();
    EXPECT(message != nullptr && std::string(message).find("device -1 does not exist") != std::string::npos);
    EXPECT(aclGetRecentErrMsg() == nullptr);
}

void check_information()
{
    uint32_t devices = 0;
    EXPECT_IS(aclrtGetDeviceCount(&devices), ACL_SUCCESS);
    EXPECT_IS(devices, 1U);
    int32_t device = -1;
    EXPECT_IS(aclrtGetDevice(&device), ACL_SUCCESS);
    EXPECT_IS(device, 0);
    aclrtRunMode mode = ACL_DEVICE;
    EXPECT_IS(aclrtGetRunMode(&mode), ACL_SUCCESS);
    EXPECT(mode == ACL_HOST);
    int32_t version[3] = {};
    EXPECT_IS(aclrtGetVersion(&version[0], &version[1], &version[2]), ACL_SUCCESS);
    int64_t cores = 0;
    EXPECT_IS(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_AICORE_CORE_NUM, &cores), ACL_SUCCESS);
    EXPECT_IS(cores, is_a2() ? 20 : is_training() ? 32 : 8);
    EXPECT_IS(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &cores), ACL_SUCCESS);
    EXPECT_IS(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &cores),
              is_training() ? ACL_ERROR_RT_FEATURE_NOT_SUPPORT : ACL_SUCCESS);
    EXPECT_IS(aclrtGetDeviceInfo(5, ACL_DEV_ATTR_AICORE_CORE_NUM, &cores), ACL_ERROR_RT_INVALID_DEVICEID);
    int32_t value = -1;
    EXPECT_IS(aclGetCannAttribute(ACL_CANN_ATTR_BF16, &value), ACL_SUCCESS);
    EXPECT_IS(value, is_a2() ? 1 : 0);
    EXPECT_IS(aclGetCannAttribute(ACL_CANN_ATTR_INF_NAN, &value), ACL_SUCCESS);
    EXPECT_IS(value, is_a2() ? 1 : 0);
    aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_ABNORMAL;
    EXPECT_IS(aclrtQueryDeviceStatus(0, &status), ACL_SUCCESS);
    EXPECT(status == ACL_RT_DEVICE_STATUS_NORMAL);
    EXPECT_IS(aclrtSetOpExecuteTimeOut(10), ACL_SUCCESS);
}

void check_settings()
{
    int64_t value = -1;
    EXPECT_IS(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_ERROR_RT_SYSPARAMOPT_NOT_SET);
    EXPECT_IS(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), ACL_SUCCESS);
    EXPECT_IS(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
    EXPECT_IS(value, 1);
    EXPECT_IS(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0), ACL_SUCCESS);
    EXPECT_IS(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
    EXPECT_IS(value, 0);
    EXPECT_IS(aclrtSetSysParamOpt(static_cast<aclSysParamOpt>(99), 0), ACL_ERROR_RT_PARAM_INVALID);
    aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
    EXPECT_IS(aclrtGetDeviceSatMode(&mode), ACL_SUCCESS);
    EXPECT(mode == (is_a2() ? ACL_RT_OVERFLOW_MODE_INFNAN : ACL_RT_OVERFLOW_MODE_SATURATION));
    EXPECT_IS(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN),
              is_a2() ? ACL_SUCCESS : ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

void check_contexts()
{
    aclrtContext own = nullptr;
    aclrtContext other = nullptr;
    aclrtContext current = nullptr;
    EXPECT_IS(aclrtGetCurrentContext(&own), ACL_SUCCESS);
    EXPECT_IS(aclrtCreateContext(&other, 0), ACL_SUCCESS);
    EXPECT_IS(aclrtGetCurrentContext(&current), ACL_SUCCESS);
    EXPECT(current == other);
    EXPECT_IS(aclrtSetCurrentContext(own), ACL_SUCCESS);
    EXPECT_IS(aclrtDestroyContext(own), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_IS(aclrtDestroyContext(other), ACL_SUCCESS);
    EXPECT_IS(aclrtSetCurrentContext(other), ACL_ERROR_RT_CONTEXT_NULL);
    aclError in_thread = ACL_SUCCESS;
    std::thread([&] {
        void *address = nullptr;
        in_thread = aclrtMalloc(&address, 8, ACL_MEM_MALLOC_HUGE_FIRST);
    }).join();
    EXPECT_IS(in_thread, ACL_ERROR_RT_CONTEXT_NULL);
}

void check_memory()
{
    const std::vector<int32_t> values = {1, 2, 3, 4};
    std::vector<int32_t> back(4);
    const size_t bytes = 16;
    void *address = nullptr;
    EXPECT_IS(aclrtMalloc(&address, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_IS(aclrtMalloc(&address, size_t{1} << 60, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
    Buffer buffer(bytes);
    void *device = buffer.address();
    EXPECT_IS(reinterpret_cast<uintptr_t>(device) % 64, 0U);
    EXPECT(buffer.read<int32_t>() != std::vector<int32_t>(4, 0));
    EXPECT_IS(aclrtMemcpy(device, bytes, values.data(), bytes, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_IS(aclrtMemcpy(back.data(), bytes, device, bytes, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_IS(aclrtMemcpy(device, bytes - 1, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE),
              ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_IS(aclrtMemcpy(device, bytes, values.data(), 0, ACL_MEMCPY_HOST_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_IS(aclrtMemcpy(back.data(), 64, device, 17, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_IS(aclrtMemcpy(device, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    Buffer copy(bytes);
    EXPECT_IS(aclrtMemcpy(copy.address(), bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_SUCCESS);
    EXPECT_IS(aclrtMemcpy(back.data(), bytes, copy.address(), bytes, ACL_MEMCPY_DEFAULT), ACL_SUCCESS);
    EXPECT(back == values);
    EXPECT_IS(aclrtMemcpy(back.data() + 2, 8, static_cast<char *>(device) + 4, 8, ACL_MEMCPY_DEVICE_TO_HOST),
              ACL_SUCCESS);
    EXPECT_IS(back[2], 2);
    EXPECT_IS(aclrtMemset(device, bytes, 0x11, 8), ACL_SUCCESS);
    EXPECT(buffer.read<int32_t>() == (std::vector<int32_t>{0x11111111, 0x11111111, 3, 4}));
    EXPECT_IS(aclrtMemset(back.data(), bytes, 0, 8), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_IS(aclrtMemset(device, 64, 0, 17), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_IS(aclrtFree(nullptr), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_IS(aclrtFree(static_cast<char *>(device) + 4), ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_IS(aclrtFree(back.data()), ACL_ERROR_RT_PARAM_INVALID);
    void *pinned = nullptr;
    EXPECT_IS(aclrtMallocHost(&pinned, bytes), ACL_SUCCESS);
    EXPECT_IS(aclrtMemcpy(pinned, bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    EXPECT_IS(aclrtFreeHost(pinned), ACL_SUCCESS);
    size_t free_bytes = 0;
    size_t total = 0;
    EXPECT_IS(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total), ACL_SUCCESS);
    EXPECT_IS(total - free_bytes, 2 * bytes);
}

void check_descriptors()
{
    const Dims dims = {2, 3};
    EXPECT(aclCreateTensor(nullptr, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims.data(), 2, nullptr) == nullptr);
    EXPECT(aclCreateTensor(dims.data(), 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 2, nullptr) == nullptr);
    const Dims odd = {-1, int64_t{1} << 62, 0, int64_t{1} << 62};
    Tensor anything(odd, static_cast<aclDataType>(1234), nullptr, static_cast<aclFormat>(-77));
    Tensor tensor({2, 3}, {7, 2}, 5, {20}, ACL_BF16, &tensor);
    int64_t *values = nullptr;
    uint64_t size = 0;
    EXPECT_IS(aclGetViewShape(tensor, &values, &size), 0);
    EXPECT(Dims(values, values + size) == dims);
    delete[] values;
    EXPECT_IS(aclGetViewStrides(tensor, &values, &size), 0);
    EXPECT(Dims(values, values + size) == (Dims{7, 2}));
    delete[] values;
    EXPECT_IS(aclGetStorageShape(tensor, &values, &size), 0);
    EXPECT(Dims(values, values + size) == Dims{20});
    delete[] values;
    int64_t offset = 0;
    EXPECT_IS(aclGetViewOffset(tensor, &offset), 0);
    EXPECT_IS(offset, 5);
    aclFormat format = ACL_FORMAT_UNDEFINED;
    aclDataType dtype = ACL_DT_UNDEFINED;
    EXPECT_IS(aclGetFormat(tensor, &format), 0);
    EXPECT_IS(aclGetDataType(tensor, &dtype), 0);
    EXPECT(format == ACL_FORMAT_ND && dtype == ACL_BF16);
    EXPECT_IS(aclGetDataType(nullptr, &dtype), null_pointer);
    void *address = nullptr;
    EXPECT_IS(aclGetRawTensorAddr(tensor, &address), 0);
    EXPECT(address == &tensor);
    EXPECT_IS(aclSetRawTensorAddr(tensor, nullptr), 0);
    EXPECT_IS(aclInitTensor(tensor, dims.data(), 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_NCL, dims.data(), 2, nullptr), 0);
    EXPECT_IS(aclGetFormat(tensor, &format), 0);
    EXPECT(format == ACL_FORMAT_NCL);
    EXPECT_IS(aclDestroyTensor(nullptr), 0);
}

void check_arrays()
{
    uint64_t size = 0;
    aclIntArray *empty = aclCreateIntArray(nullptr, 3);
    EXPECT_IS(aclGetIntArraySize(empty, &size), 0);
    EXPECT_IS(size, 0U);
    EXPECT_IS(aclDestroyIntArray(empty), 0);
    const float numbers[] = {1, 2};
    aclFloatArray *floats = aclCreateFloatArray(numbers, 2);
    EXPECT_IS(aclGetFloatArraySize(floats, &size), 0);
    EXPECT_IS(size, 2U);
    EXPECT_IS(aclDestroyFloatArray(floats), 0);
    const bool flags[] = {true};
    aclBoolArray *bools = aclCreateBoolArray(flags, 1);
    EXPECT_IS(aclGetBoolArraySize(bools, &size), 0);
    EXPECT_IS(aclDestroyBoolArray(bools), 0);
    const Dims dims = {1};
    const aclTensor *tensors[] = {
        aclCreateTensor(dims.data(), 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims.data(), 1, nullptr)};
    aclTensorList *list = aclCreateTensorList(tensors, 1);
    EXPECT_IS(aclGetTensorListSize(list, &size), 0);
    EXPECT_IS(aclDestroyTensorList(list), 0);
    double number = 2.5;
    const aclScalar *scalars[] = {aclCreateScalar(&number, ACL_DOUBLE)};
    aclScalarList *scalar_list = aclCreateScalarList(scalars, 1);
    EXPECT_IS(aclGetScalarListSize(scalar_list, &size), 0);
    EXPECT_IS(aclDestroyScalarList(scalar_list), 0);
    EXPECT_IS(aclDestroyScalar(aclCreateScalar(&number, ACL_DOUBLE)), 0);
    EXPECT_IS(aclGetIntArraySize(nullptr, &size), null_pointer);
}

// A call of SoftmaxBackward on rows of two: y = (1, 2), g = (3, 4) a row gives y * (g - 11).
struct SoftmaxCall {
    explicit SoftmaxCall(int64_t rows)
        : y(repeated(rows, 1, 2)),
          g(repeated(rows, 3, 4)),
          out(std::vector<float>(static_cast<size_t>(2 * rows), -1)),
          y_tensor({rows, 2}, ACL_FLOAT, y.address()),
          g_tensor({rows, 2}, ACL_FLOAT, g.address()),
          out_tensor({rows, 2}, ACL_FLOAT, out.address())
    {
    }

    static std::vector<float> repeated(int64_t rows, float first, float second)
    {
        std::vector<float> values;
        for (int64_t row = 0; row < rows; ++row) {
            values.push_back(first);
            values.push_back(second);
        }
        return values;
    }

    aclnnStatus prepare(uint64_t *workspace_size, aclOpExecutor **executor) const
    {
        return aclnnSoftmaxBackwardGetWorkspaceSize(g_tensor, y_tensor, -1, out_tensor, workspace_size, executor);
    }

    bool is_right() const { return out.read<float>() == repeated(rows(), -8, -14); }
    bool is_untouched() const { return out.read<float>() == repeated(rows(), -1, -1); }
    int64_t rows() const { return static_cast<int64_t>(y.read<float>().size() / 2); }

    Buffer y;
    Buffer g;
    Buffer out;
    Tensor y_tensor;
    Tensor g_tensor;
    Tensor out_tensor;
};

void check_asynchrony(aclrtStream stream)
{
    const SoftmaxCall call(1000);
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    EXPECT_IS(call.prepare(&size, &executor), 0);
    Buffer workspace(size);
    EXPECT_IS(aclnnSoftmaxBackward(workspace.address(), size, executor, stream), 0);
    EXPECT(call.is_untouched());
    aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
    EXPECT_IS(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
    EXPECT(status == ACL_STREAM_STATUS_NOT_READY);
    EXPECT_IS(aclrtSynchronizeStreamWithTimeout(stream, 0), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    EXPECT_IS(aclrtSynchronizeStreamWithTimeout(stream, -1), ACL_SUCCESS);
    EXPECT(call.is_right());
    EXPECT_IS(aclrtStreamQuery(stream, &status), ACL_SUCCESS);
    EXPECT(status == ACL_STREAM_STATUS_COMPLETE);
}

void check_stream_calls()
{
    const std::vector<float> values = {1, 2, 3};
    std::vector<float> back(3);
    Buffer buffer(size_t{12});
    aclrtStream stream = make_stream();
    EXPECT_IS(aclrtMemcpyAsync(buffer.address(), 12, values.data(), 12, ACL_MEMCPY_HOST_TO_DEVICE, stream),
              ACL_SUCCESS);
    EXPECT_IS(aclrtMemcpyAsync(back.data(), 12, buffer.address(), 12, ACL_MEMCPY_DEVICE_TO_HOST, stream), ACL_SUCCESS);
    EXPECT_IS(aclrtMemsetAsync(buffer.address(), 12, 0, 4, stream), ACL_SUCCESS);
    EXPECT_IS(aclrtMemcpyAsync(back.data(), 12, buffer.address(), 12, ACL_MEMCPY_HOST_TO_DEVICE, stream),
              ACL_ERROR_RT_PARAM_INVALID);
    EXPECT_IS(aclrtSynchronizeDevice(), ACL_SUCCESS);
    EXPECT(back == values);
    EXPECT(buffer.read<float>() == (std::vector<float>{0, 2, 3}));
    EXPECT_IS(aclrtMemsetAsync(buffer.address(), 12, 0, 12, stream), ACL_SUCCESS);
    EXPECT_IS(aclrtStreamAbort(stream), ACL_SUCCESS);
    EXPECT_IS(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT(buffer.read<float>() == (std::vector<float>{0, 2, 3}));
    EXPECT_IS(aclrtSetStreamOverflowSwitch(stream, 1), ACL_SUCCESS);
    EXPECT_IS(aclrtDestroyStream(stream), ACL_SUCCESS);
    EXPECT_IS(aclrtDestroyStream(stream), ACL_ERROR_RT_STREAM_CONTEXT);
    EXPECT_IS(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_CONTEXT);
    EXPECT_IS(aclrtDestroyStreamForce(make_stream()), ACL_SUCCESS);
}

void check_executors(aclrtStream stream)
{
    const SoftmaxCall call(3);
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    EXPECT_IS(call.prepare(nullptr, &executor), null_pointer);
    EXPECT_IS(call.prepare(&size, nullptr), null_pointer);

    EXPECT_IS(call.prepare(&size, &executor), 0);
    const uint64_t cold = size;
    finish(aclnnSoftmaxBackward, size, executor, stream);
    EXPECT(call.is_right());
    EXPECT_IS(aclnnSoftmaxBackward(nullptr, 0, executor, stream), inner);
    EXPECT_IS(aclDestroyAclOpExecutor(executor), inner);
    EXPECT_IS(aclnnSoftmaxBackward(nullptr, 0, nullptr, stream), null_pointer);

    EXPECT_IS(call.prepare(&size, &executor), 0);
    EXPECT_IS(size, cold);
    EXPECT_IS(aclnnSoftmaxBackward(nullptr, size, executor, stream), null_pointer);
    EXPECT_IS(aclDestroyAclOpExecutor(executor), inner);

    EXPECT_IS(call.prepare(&size, &executor), 0);
    EXPECT_IS(aclnnRmsNormGrad(nullptr, 0, executor, stream), inner);
    EXPECT_IS(aclDestroyAclOpExecutor(executor), 0);
    EXPECT_IS(aclDestroyAclOpExecutor(nullptr), null_pointer);
    EXPECT_IS(aclSetAclOpExecutorRepeatable(nullptr), inner_null);

    EXPECT_IS(call.prepare(&size, &executor), 0);
    aclrtStream gone = make_stream();
    EXPECT_IS(aclrtDestroyStream(gone), ACL_SUCCESS);
    Buffer workspace(size);
    EXPECT_IS(aclnnSoftmaxBackward(workspace.address(), size, executor, gone), runtime_failed);

    aclnnStatus status = 0;
    {
        const Tensor out({3, 2}, ACL_FLOAT, call.out.address());
        EXPECT_IS(aclnnSoftmaxBackwardGetWorkspaceSize(call.g_tensor, call.y_tensor, 1, out, &size, &executor), 0);
    }
    status = aclnnSoftmaxBackward(workspace.address(), size, executor, stream);
    EXPECT_IS(status, inner_null);
}

void check_repeatable(aclrtStream stream)
{
    const SoftmaxCall call(3);
    Buffer other(std::vector<float>(6, -1));
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    EXPECT_IS(call.prepare(&size, &executor), 0);
    EXPECT_IS(aclSetAclOpExecutorRepeatable(executor), 0);
    finish(aclnnSoftmaxBackward, size, executor, stream);
    EXPECT(call.is_right());
    EXPECT_IS(aclSetOutputTensorAddr(executor, 0, call.out_tensor, other.address()), 0);
    EXPECT_IS(aclSetOutputTensorAddr(executor, 1, call.out_tensor, other.address()), invalid);
    EXPECT_IS(aclSetInputTensorAddr(executor, 0, call.g_tensor, call.y.address()), 0);
    EXPECT_IS(aclSetInputTensorAddr(executor, 2, call.g_tensor, call.y.address()), invalid);
    EXPECT_IS(aclSetTensorAddr(executor, 3, call.g_tensor, call.y.address()), invalid);
    EXPECT_IS(aclSetTensorAddr(executor, 1, call.y_tensor, call.y.address()), 0);
    EXPECT_IS(aclSetDynamicTensorAddr(executor, 0, 0, nullptr, nullptr), null_pointer);
    finish(aclnnSoftmaxBackward, size, executor, stream);
    // y = g = (1, 2): y * (g - 5)
    EXPECT(other.read<float>() == SoftmaxCall::repeated(3, -4, -6));
    EXPECT_IS(aclDestroyAclOpExecutor(executor), 0);
}

void check_interleaved()
{
    aclrtStream streams[] = {make_stream(), make_stream()};
    const SoftmaxCall calls[] = {SoftmaxCall(5), SoftmaxCall(70)};
    uint64_t sizes[2] = {};
    aclOpExecutor *executors[2] = {};
    for (size_t i = 0; i < 2; ++i) {
        EXPECT_IS(calls[i].prepare(&sizes[i], &executors[i]), 0);
    }
    Buffer first(sizes[0]);
    Buffer second(sizes[1]);
    EXPECT_IS(aclnnSoftmaxBackward(second.address(), sizes[1], executors[1], streams[1]), 0);
    EXPECT_IS(aclnnSoftmaxBackward(first.address(), sizes[0], executors[0], streams[0]), 0);
    for (size_t i = 0; i < 2; ++i) {
        EXPECT_IS(aclrtSynchronizeStream(streams[i]), ACL_SUCCESS);
        EXPECT(calls[i].is_right());
        EXPECT_IS(aclrtDestroyStream(streams[i]), ACL_SUCCESS);
    }
}

void check_threads()
{
    std::vector<std::thread> threads;
    for (int64_t number = 0; number < 4; ++number) {
        threads.emplace_back([number] {
            EXPECT_IS(aclrtSetDevice(0), ACL_SUCCESS);
            aclrtStream stream = make_stream();
            for (int64_t turn = 1; turn <= 10; ++turn) {
                const SoftmaxCall call(number * 10 + turn);
                uint64_t size = 0;
                aclOpExecutor *executor = nullptr;
                EXPECT_IS(call.prepare(&size, &executor), 0);
                finish(aclnnSoftmaxBackward, size, executor, stream);
                EXPECT(call.is_right());
            }
            EXPECT_IS(aclrtDestroyStream(stream), ACL_SUCCESS);
            EXPECT_IS(aclrtResetDevice(0), ACL_SUCCESS);
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
}

void check_softmax(aclrtStream stream)
{
    // A transposed gradient, an output with gaps and an offset: y (2, 2) of ones, g = ((1, 3), (2, 4)).
    Buffer y(std::vector<float>(4, 1));
    Buffer g(std::vector<float>{1, 2, 3, 4});
    Buffer out(std::vector<float>(9, -1));
    const Tensor y_tensor({2, 2}, ACL_FLOAT, y.address());
    const Tensor g_tensor({2, 2}, {1, 2}, 0, {4}, ACL_FLOAT, g.address());
    const Tensor out_tensor({2, 2}, {4, 2}, 1, {9}, ACL_FLOAT, out.address());
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    EXPECT_IS(aclnnSoftmaxBackwardGetWorkspaceSize(g_tensor, y_tensor, 0, out_tensor, &size, &executor), 0);
    EXPECT(size > 0);
    finish(aclnnSoftmaxBackward, size, executor, stream);
    EXPECT(out.read<float>() == (std::vector<float>{-1, -2, -1, -4, -1, -1, -1, -3, -1}));

    EXPECT_IS(aclnnSoftmaxBackwardGetWorkspaceSize(nullptr, y_tensor, 0, out_tensor, &size, &executor), null_pointer);
    EXPECT_IS(aclnnSoftmaxBackwardGetWorkspaceSize(g_tensor, y_tensor, 2, out_tensor, &size, &executor), invalid);
    EXPECT_IS(aclnnSoftmaxBackwardGetWorkspaceSize(g_tensor, y_tensor, -3, out_tensor, &size, &executor), invalid);
    const Tensor bfloats({2, 2}, ACL_BF16, nullptr);
    EXPECT_IS(aclnnSoftmaxBackwardGetWorkspaceSize(bfloats, bfloats, 0, bfloats, &size, &executor),
              is_a2() ? 0 : invalid);
    if (is_a2()) {
        EXPECT_IS(aclDestroyAclOpExecutor(executor), 0);
    }
    const Tensor integers({2, 2}, ACL_INT32, nullptr);
    EXPECT_IS(aclnnSoftmaxBackwardGetWorkspaceSize(integers, integers, 0, integers, &size, &executor), invalid);
    const Tensor outside({2, 2}, {4, 2}, 1, {7}, ACL_FLOAT, out.address());
    EXPECT_IS(aclnnSoftmaxBackwardGetWorkspaceSize(outside, y_tensor, 0, out_tensor, &size, &executor), inner_null);
    const Tensor huge({2147483646, 2147483646, 2147483646}, ACL_FLOAT, nullptr);
    EXPECT_IS(aclnnSoftmaxBackwardGetWorkspaceSize(huge, huge, 0, huge, &size, &executor), 0);
    EXPECT_IS(aclDestroyAclOpExecutor(executor), 0);
    const Tensor empty({0, 3}, ACL_FLOAT, nullptr);
    EXPECT_IS(aclnnSoftmaxBackwardGetWorkspaceSize(empty, empty, 0, empty, &size, &executor), 0);
    EXPECT_IS(size, 0U);
    finish(aclnnSoftmaxBackward, size, executor, stream);
}

// FLOAT16: 256 * 256 * 2 does not fit; with one element along the axis the result is 0, with two it is -(256 * 512).
void check_overflow(aclrtStream stream)
{
    Buffer y(halves({256, 256}));
    Buffer g(halves({256, 256}));
    Buffer out(std::vector<uint16_t>(2, 0));
    Buffer status(std::vector<uint64_t>(8, 77));
    const Tensor y_tensor({2}, ACL_FLOAT16, y.address());
    const Tensor g_tensor({2}, ACL_FLOAT16, g.address());
    const Tensor out_tensor({2}, ACL_FLOAT16, out.address());
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    EXPECT_IS(aclrtResetOverflowStatus(stream), ACL_SUCCESS);
    EXPECT_IS(aclnnSoftmaxBackwardGetWorkspaceSize(g_tensor, y_tensor, 0, out_tensor, &size, &executor), 0);
    finish(aclnnSoftmaxBackward, size, executor, stream);
    EXPECT_IS(out.read<uint16_t>()[0], is_a2() ? 0xFC00 : 0xFBFF);
    EXPECT_IS(aclrtGetOverflowStatus(status.address(), 64, stream), ACL_SUCCESS);
    EXPECT_IS(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_IS(status.read<uint64_t>()[0], is_a2() ? 0U : 2U);
    EXPECT_IS(aclrtGetOverflowStatus(status.address(), 32, stream), ACL_ERROR_RT_PARAM_INVALID);
}

// One channel, L = 2, pad = 1, T = 2, To = 3: self = (1, 2, 3), input = (5, 7), weight = (11, 13).
void check_conv_tbc(aclrtStream stream)
{
    Buffer self(std::vector<float>{1, 2, 3});
    Buffer input(std::vector<float>{5, 7});
    Buffer weight(std::vector<float>{11, 13});
    Buffer grad_input(std::vector<float>(2, -1));
    Buffer grad_weight(std::vector<float>(2, -1));
    Buffer grad_bias(std::vector<float>(1, -1));
    const Tensor self_tensor({3, 1, 1}, ACL_FLOAT, self.address(), ACL_FORMAT_NCL);
    const Tensor input_tensor({2, 1, 1}, ACL_FLOAT, input.address());
    const Tensor weight_tensor({2, 1, 1}, ACL_FLOAT, weight.address());
    const Tensor bias_tensor({1}, ACL_FLOAT, nullptr);
    const Tensor grad_input_tensor({2, 1, 1}, ACL_FLOAT, grad_input.address(), ACL_FORMAT_NCL);
    const Tensor grad_weight_tensor({2, 1, 1}, ACL_FLOAT, grad_weight.address());
    const Tensor grad_bias_tensor({1}, ACL_FLOAT, grad_bias.address());
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    const auto prepare = [&](const aclTensor *bias, int64_t pad, int8_t mode) {
        return aclnnConvTbcBackwardGetWorkspaceSize(self_tensor, input_tensor, weight_tensor, bias, pad, mode,
                                                    grad_input_tensor, grad_weight_tensor, grad_bias_tensor, &size,
                                                    &executor);
    };
    if (!is_a2() && !is_training()) {
        EXPECT_IS(prepare(bias_tensor, 1, 1), no_kernel);
        return;
    }
    EXPECT_IS(prepare(nullptr, 1, 1), null_pointer);
    EXPECT_IS(prepare(bias_tensor, 0, 1), invalid);
    EXPECT_IS(prepare(bias_tensor, -1, 1), invalid);
    EXPECT_IS(prepare(bias_tensor, std::numeric_limits<int64_t>::max(), 1), invalid);
    EXPECT_IS(prepare(bias_tensor, 1, 4), invalid);
    EXPECT_IS(prepare(bias_tensor, 1, -1), invalid);
    for (int8_t mode = 0; mode <= 3; ++mode) {
        if (is_training() && (mode == 0 || mode == 3)) {
            EXPECT_IS(prepare(bias_tensor, 1, mode), invalid);
            continue;
        }
        EXPECT_IS(prepare(bias_tensor, 1, mode), 0);
        finish(aclnnConvTbcBackward, size, executor, stream);
        // gradInput[t] = self[t + 1] 11 + self[t] 13; gradWeight = (2 * 5 + 3 * 7, 1 * 5 + 2 * 7); gradBias = 6
        EXPECT(grad_input.read<float>() == (std::vector<float>{35, 59}));
        EXPECT(grad_weight.read<float>() == (std::vector<float>{31, 19}));
        EXPECT(grad_bias.read<float>() == std::vector<float>{6});
    }
}

template <class T>
void check_embedding_with(aclrtStream stream, const std::vector<T> &index_values, aclDataType dtype)
{
    Buffer grad(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
    Buffer indices(index_values);
    Buffer out(std::vector<float>(6, -1));
    const Tensor grad_tensor({2, 2, 2}, ACL_FLOAT, grad.address());
    const Tensor indices_tensor({4}, dtype, indices.address());
    const Tensor out_tensor({3, 2}, ACL_FLOAT, out.address());
    const auto prepare = [&](uint64_t rows, uint64_t padding, bool scale, uint64_t *size, aclOpExecutor **executor) {
        return aclnnEmbeddingDenseBackwardGetWorkspaceSize(grad_tensor, indices_tensor, rows, padding, scale,
                                                           out_tensor, size, executor);
    };
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    if (!is_a2() && !is_training()) {
        EXPECT_IS(prepare(3, 9, false, &size, &executor), no_kernel);
        return;
    }
    EXPECT_IS(prepare(4, 9, false, &size, &executor), invalid);
    EXPECT_IS(prepare(3, ~uint64_t{0}, false, &size, &executor), 0);
    finish(aclnnEmbeddingDenseBackward, size, executor, stream);
    EXPECT(out.read<float>() == (std::vector<float>{3, 4, 13, 16, 0, 0}));
    EXPECT_IS(prepare(3, 0, true, &size, &executor), 0);
    finish(aclnnEmbeddingDenseBackward, size, executor, stream);
    // 13 / 3 through the reciprocal in FP32
    const float factor = 1.0F / 3.0F;
    EXPECT(out.read<float>() == (std::vector<float>{0, 0, 13 * factor, 16 * factor, 0, 0}));
}

void check_embedding(aclrtStream stream)
{
    check_embedding_with<float>(stream, {1, 0, 1, 1}, ACL_FLOAT);
    check_embedding_with<uint16_t>(stream, halves({1, 0, 1, 1}), ACL_FLOAT16);
    check_embedding_with<double>(stream, {1, 0, 1, 1}, ACL_DOUBLE);
    check_embedding_with<int8_t>(stream, {1, 0, 1, 1}, ACL_INT8);
    check_embedding_with<int16_t>(stream, {1, 0, 1, 1}, ACL_INT16);
    check_embedding_with<int32_t>(stream, {1, 0, 1, 1}, ACL_INT32);
    check_embedding_with<int64_t>(stream, {1, 0, 1, 1}, ACL_INT64);
    check_embedding_with<uint8_t>(stream, {1, 0, 1, 1}, ACL_UINT8);
    check_embedding_with<uint8_t>(stream, {1, 0, 1, 1}, ACL_BOOL);
}

void check_upsample(aclrtStream stream)
{
    Buffer grad(std::vector<float>{1, 2, 3, 4, 5, 6, 7});
    Buffer out(std::vector<float>(4, -1));
    const Tensor grad_tensor({1, 1, 7}, ACL_FLOAT, grad.address(), ACL_FORMAT_NCL);
    const Tensor out_tensor({1, 1, 4}, ACL_FLOAT, out.address());
    const IntArray output_size({7});
    const IntArray input_size({1, 1, 4});
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    const auto prepare = [&](const aclIntArray *outputs, const aclIntArray *inputs, double scales) {
        return aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(grad_tensor, outputs, inputs, scales, out_tensor,
                                                                   &size, &executor);
    };
    if (!is_a2()) {
        EXPECT_IS(prepare(output_size, input_size, 0), no_kernel);
        return;
    }
    EXPECT_IS(prepare(output_size, nullptr, 0), null_pointer);
    EXPECT_IS(prepare(input_size, input_size, 0), invalid);
    EXPECT_IS(prepare(output_size, output_size, 0), invalid);
    EXPECT_IS(prepare(output_size, input_size, -1), invalid);
    for (const double scales : {0.0, 1.75, std::nan("")}) {
        EXPECT_IS(prepare(output_size, input_size, scales), 0);
        finish(aclnnUpsampleNearestExact1dBackward, size, executor, stream);
        // the ranges of gl = 7, ol = 4 are [0, 2), [2, 3), [3, 5), [5, 7)
        EXPECT(out.read<float>() == (std::vector<float>{3, 3, 9, 13}));
    }
    EXPECT_IS(prepare(nullptr, input_size, 0), 0);
    EXPECT_IS(aclDestroyAclOpExecutor(executor), 0);
    // Every other element, from the second on: 2, 4, 6. The ranges of gl = 3, ol = 4 are [0, 1), [1, 1), [1, 2), [2,
    // 3).
    const Tensor every_other({1, 1, 3}, {3, 3, 2}, 1, {7}, ACL_FLOAT, grad.address());
    const IntArray three({3});
    EXPECT_IS(aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(every_other, three, input_size, 0, out_tensor, &size,
                                                                  &executor),
              0);
    EXPECT(size > 0);
    finish(aclnnUpsampleNearestExact1dBackward, size, executor, stream);
    EXPECT(out.read<float>() == (std::vector<float>{2, 0, 4, 6}));
}

void check_rms_norm(aclrtStream stream)
{
    // Two rows of eight ones, rstd 2, gamma 1, dy 1: h = 2, the mean of g * h is 2, dx = (1 - 4) * 2, dgamma = 2 * 2.
    const std::vector<float> ones(16, 1);
    Buffer dy(ones);
    Buffer x(ones);
    Buffer rstd(std::vector<float>{2, 2});
    Buffer gamma(std::vector<float>(8, 1));
    Buffer dx(std::vector<float>(16, -1));
    Buffer dgamma(std::vector<float>(8, -1));
    const Tensor dy_tensor({2, 8}, ACL_FLOAT, dy.address());
    const Tensor x_tensor({2, 8}, ACL_FLOAT, x.address());
    const Tensor rstd_tensor({2}, ACL_FLOAT, rstd.address());
    const Tensor gamma_tensor({8}, ACL_FLOAT, gamma.address());
    const Tensor dx_tensor({2, 8}, ACL_FLOAT, dx.address());
    const Tensor dgamma_tensor({8}, ACL_FLOAT, dgamma.address());
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    const auto prepare = [&](const aclTensor *first, const aclTensor *factors) {
        return aclnnRmsNormGradGetWorkspaceSize(first, x_tensor, factors, gamma_tensor, dx_tensor, dgamma_tensor, &size,
                                                &executor);
    };
    if (is_training()) {
        EXPECT_IS(prepare(dy_tensor, rstd_tensor), no_kernel);
        return;
    }
    EXPECT_IS(prepare(dy_tensor, nullptr), null_pointer);
    EXPECT_IS(prepare(dy_tensor, gamma_tensor), tiling);
    const Tensor bfloats({2, 8}, ACL_BF16, dy.address());
    EXPECT_IS(prepare(bfloats, rstd_tensor), invalid);
    const Tensor strided({2, 8}, {1, 2}, 0, {16}, ACL_FLOAT, dy.address());
    EXPECT_IS(prepare(strided, rstd_tensor), tiling);
    EXPECT_IS(prepare(dy_tensor, rstd_tensor), 0);
    finish(aclnnRmsNormGrad, size, executor, stream);
    EXPECT(dx.read<float>() == std::vector<float>(16, -6));
    EXPECT(dgamma.read<float>() == std::vector<float>(8, 4));
    EXPECT_IS(prepare(dy_tensor, rstd_tensor), 0);
    Buffer workspace(size);
    EXPECT_IS(aclnnRmsNormGrad(workspace.address(), size - 1, executor, stream), invalid);
    EXPECT_IS(aclnnRmsNormGrad(workspace.address(), size, executor, stream), inner);
    const Tensor short_rows({2, 7}, ACL_FLOAT, nullptr);
    const Tensor short_row({7}, ACL_FLOAT, nullptr);
    EXPECT_IS(aclnnRmsNormGradGetWorkspaceSize(short_rows, short_rows, rstd_tensor, short_row, short_rows, short_row,
                                               &size, &executor),
              is_a2() ? 0 : tiling);
    if (is_a2()) {
        EXPECT_IS(aclDestroyAclOpExecutor(executor), 0);
    }
}

void check_failing_calls()
{
    const Tensor tensor({2, 2}, ACL_FLOAT, nullptr);
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    for (int turn = 0; turn < 10000; ++turn) {
        EXPECT_IS(aclnnSoftmaxBackwardGetWorkspaceSize(tensor, tensor, 5, tensor, &size, &executor), invalid);
    }
    EXPECT(std::strlen(aclGetRecentErrMsg()) < 10000);
}

// What a fault does: the wait tells, nothing runs any more, and a reset makes the device fit again.
void check_fault()
{
    aclrtStream stream = make_stream();
    uint64_t size = 0;
    aclOpExecutor *executor = nullptr;
    {
        SoftmaxCall call(2);
        EXPECT_IS(call.prepare(&size, &executor), 0);
        Buffer small(size - 1);
        EXPECT_IS(aclnnSoftmaxBackward(small.address(), size, executor, stream), 0);
        EXPECT_IS(aclrtSynchronizeStream(stream), ACL_ERROR_RT_AICORE_EXCEPTION);
        EXPECT(std::string(aclGetRecentErrMsg()).find("workspace") != std::string::npos);
        float value = 0;
        EXPECT_IS(aclrtMemcpy(&value, 4, call.out.address(), 4, ACL_MEMCPY_DEVICE_TO_HOST),
                  ACL_ERROR_RT_AICORE_EXCEPTION);
        EXPECT_IS(call.prepare(&size, &executor), 0);
        EXPECT_IS(aclnnSoftmaxBackward(small.address(), size, executor, stream), runtime_failed);
        aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_NORMAL;
        EXPECT_IS(aclrtQueryDeviceStatus(0, &status), ACL_SUCCESS);
        EXPECT(status == ACL_RT_DEVICE_STATUS_ABNORMAL);
        EXPECT_IS(aclrtResetDeviceForce(0), ACL_SUCCESS);
        call.y.forget();
        call.g.forget();
        call.out.forget();
        small.forget();
    }
    EXPECT_IS(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_CONTEXT);
    EXPECT_IS(aclrtSetDevice(0), ACL_SUCCESS);
    stream = make_stream();
    const SoftmaxCall call(2);
    EXPECT_IS(call.prepare(&size, &executor), 0);
    finish(aclnnSoftmaxBackward, size, executor, stream);
    EXPECT(call.is_right());
    EXPECT_IS(aclrtDestroyStream(stream), ACL_SUCCESS);
}

void check_life_cycle_after()
{
    EXPECT_IS(aclrtResetDevice(0), ACL_SUCCESS);
    EXPECT_IS(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_NULL);
    uint64_t left = 77;
    EXPECT_IS(aclFinalizeReference(&left), ACL_SUCCESS);
    EXPECT_IS(left, 1U);
    EXPECT_IS(aclFinalize(), ACL_SUCCESS);
    EXPECT_IS(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
    EXPECT_IS(aclnnFinalize(), 0);
}

int dereference()
{
    EXPECT_IS(aclInit(nullptr), ACL_SUCCESS);
    EXPECT_IS(aclrtSetDevice(0), ACL_SUCCESS);
    const Buffer buffer(std::vector<float>{1});
    std::printf("%f\n", static_cast<double>(*static_cast<volatile float *>(buffer.address())));
    return 0;
}

// Inside the device: it copies more than the host has.
int overrun()
{
    EXPECT_IS(aclInit(nullptr), ACL_SUCCESS);
    EXPECT_IS(aclrtSetDevice(0), ACL_SUCCESS);
    const std::vector<int64_t> two(2, 1);
    const Buffer buffer(4 * sizeof(int64_t));
    return aclrtMemcpy(buffer.address(), 32, two.data(), 32, ACL_MEMCPY_HOST_TO_DEVICE);
}

int overflow(int one)
{
    volatile int32_t large = std::numeric_limits<int32_t>::max();
    return large + one > 0 ? 0 : 2;
}

// A seeded error of each kind that a sanitizer is to find, by its name.
int err(const std::string &what)
{
    if (what == "dereference") {
        return dereference();
    }
    return what == "overrun" ? overrun() : overflow(1);
}

}  // namespace

int main(int count, char **words)
{
    if (count > 1) {
        return err(words[1]);
    }
    check_life_cycle_before();
    check_information();
    check_settings();
    check_contexts();
    check_memory();
    check_descriptors();
    check_arrays();
    aclrtStream stream = make_stream();
    check_asynchrony(stream);
    check_stream_calls();
    check_executors(stream);
    check_repeatable(stream);
    check_interleaved();
    check_threads();
    check_softmax(stream);
    check_overflow(stream);
    check_conv_tbc(stream);
    check_embedding(stream);
    check_upsample(stream);
    check_rms_norm(stream);
    check_failing_calls();
    EXPECT_IS(aclrtDestroyStream(stream), ACL_SUCCESS);
    check_fault();
    check_life_cycle_after();
    std::puts("all holds");
    return 0;
}
