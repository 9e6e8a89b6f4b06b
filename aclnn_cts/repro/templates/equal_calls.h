// Equal calls must give equal results; nan equals nan.
#pragma once
#include "device.h"

void CompareEqual(const std::vector<const char *> &outputs) {
  size_t count = outputs.size();
  for (size_t place = count; place < results.size(); ++place) {
    const std::vector<double> &first = results[place % count], &other = results[place];
    size_t differ = 0;
    for (size_t element = 0; element < first.size(); ++element) {
      bool nans = std::isnan(first[element]) && std::isnan(other[element]);
      if (first[element] != other[element] && !nans) ++differ;
    }
    if (differ) {
      std::printf("%s: %zu of %zu elements of call %zu differ from call 1\n", outputs[place % count], differ,
                  first.size(), place / count + 1);
      fault = true;
    }
  }
}
