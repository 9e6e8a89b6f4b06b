// Relations between the outputs of several calls.
#pragma once
#include "device.h"

// Row by row: a constant and what is added to it, on both sides, no further apart than the bound.
struct Term {
  size_t result, first;
  int64_t step;
  double factor;
};
struct Side {
  double constant;
  std::vector<Term> terms;
};
struct Run {
  size_t rows;
  Side left, right;
};
struct Relation {
  const char *output, *said, *place;
  std::vector<int64_t> shape;
  std::vector<Run> runs;
  std::vector<double> bounds;
};

double Sum(const Side &side, size_t row) {
  long double total = side.constant;
  for (const Term &term : side.terms) {
    size_t element = term.first + static_cast<size_t>(static_cast<int64_t>(row) * term.step);
    total += static_cast<long double>(term.factor) * results[term.result][element];
  }
  return static_cast<double>(total);
}

void Relate(const std::vector<Relation> &relations, size_t wanted) {
  if (results.size() != wanted) {
    std::printf("a call gave no outputs, so that nothing is known of what they have to do with one another\n");
    return;
  }
  for (const Relation &relation : relations) {
    std::printf("%s: %s\n", relation.output, relation.said);
    size_t wrong = 0, place = 0;
    for (const Run &run : relation.runs) {
      for (size_t row = 0; row < run.rows; ++row, ++place) {
        double left = Sum(run.left, row), right = Sum(run.right, row), bound = relation.bounds[place];
        bool alike = left == right || (std::isnan(left) && std::isnan(right));
        if (alike || std::isinf(bound) || std::fabs(left - right) <= bound) continue;
        if (++wrong <= 8) {
          PrintPlace("", relation.output, relation.shape, place);
          std::printf("%s%s%s is %.17g and %.17g, which may be %.3g apart\n", *relation.place ? " (" : "",
                      relation.place, *relation.place ? ")" : "", left, right, bound);
        }
      }
    }
    if (wrong) std::printf("%zu of %zu do not hold\n", wrong, place);
    fault = fault || wrong > 0;
  }
}
