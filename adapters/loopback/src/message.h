// Error messages, one store for each calling thread: aclGetRecentErrMsg gives the newest first and empties it.
#pragma once

#include <cstdint>
#include <string>

namespace loopback {

[[gnu::format(printf, 1, 2)]] std::string text(const char *format, ...);

// Keeps a message for the calling thread. Only the newest few are kept, so that failing calls never make it grow.
void report(const std::string &message);

// Keeps the message and returns the code, which also becomes the thread's last error.
int32_t fail(int32_t code, const std::string &message);

int32_t last_error();
void clear_last_error();

}  // namespace loopback
