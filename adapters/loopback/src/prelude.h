// Standard headers that many sources share, compiled once for all of them. No source relies on it.
// A guard and no pragma: this header is also compiled by itself, where the pragma is a warning.
#ifndef ACLNN_CTS_LOOPBACK_PRELUDE_H
#define ACLNN_CTS_LOOPBACK_PRELUDE_H

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#endif
