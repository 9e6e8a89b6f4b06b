// Refused calls in a row.
#pragma once
#include "prelude.h"
#include "aclnn/acl_meta.h"

// Memory of this process, in bytes; 0 where the system does not tell.
size_t ResidentBytes() {
  size_t whole = 0, resident = 0;
  if (std::FILE *file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%zu %zu", &whole, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Refused calls in a row: one status, and a process that does not grow over the second half of them.
int ManyTimes(int times, size_t allowed, int (*prepare)(), int (*phaseOne)(const char *), int (*release)(),
              const aclnnStatus *status, int (*judge)(const char *)) {
  size_t before = 0;
  aclnnStatus first = 0;
  for (int number = 0; number < times; ++number) {
    if (number == times / 2) before = ResidentBytes();
    TAKE(prepare());
    TAKE(phaseOne(number == 0 ? "" : nullptr));
    TAKE(release());
    if (number == 0) first = *status;
    if (*status != first) {
      std::printf("call %d in a row returned %d, the first %d\n", number, static_cast<int>(*status),
                  static_cast<int>(first));
      fault = true;
      break;
    }
  }
  size_t now = ResidentBytes();
  size_t grown = now > before ? now - before : 0;
  std::printf("the process grew by %zu bytes over the last %d of %d calls; %zu are allowed for\n", grown,
              times - times / 2, times, allowed);
  if (grown > allowed) fault = true;
  return judge("");
}
