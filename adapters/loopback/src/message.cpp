#include "message.h"

#include <cstdarg>
#include <cstdio>
#include <deque>

#include "acl/acl.h"

namespace loopback {
namespace {

constexpr size_t kept_messages = 8;

thread_local std::deque<std::string> messages;
thread_local std::string answer;
thread_local int32_t last = ACL_SUCCESS;

}  // namespace

std::string text(const char *format, ...)
{
    char buffer[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return buffer;
}

void report(const std::string &message)
{
    messages.push_front(message);
    if (messages.size() > kept_messages) {
        messages.pop_back();
    }
}

int32_t fail(int32_t code, const std::string &message)
{
    report("E" + std::to_string(code) + ": " + message);
    last = code;
    return code;
}

int32_t last_error()
{
    return last;
}

void clear_last_error()
{
    last = ACL_SUCCESS;
}

}  // namespace loopback

extern "C" {

const char *aclGetRecentErrMsg(void)
{
    using namespace loopback;
    if (messages.empty()) {
        return nullptr;
    }
    answer.clear();
    for (const std::string &message : messages) {
        answer += message;
        answer += '\n';
    }
    messages.clear();
    return answer.c_str();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel)
{
    return loopback::last_error();
}

aclError aclrtGetLastError(aclrtLastErrLevel)
{
    const aclError error = loopback::last_error();
    loopback::clear_last_error();
    return error;
}
}
