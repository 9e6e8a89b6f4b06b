# `make run` judges some of torch's kernels, `make test` tests the harness; both need Python 3.10+ with venv, and nothing done
# first.
PYTHON ?= python3
JOBS ?= 2
ARGS ?=
DOCUMENTS ?=
SEEDS ?= 5
CALLS ?= 1000
DECOY_SEEDS ?= 10
OTHERS ?= 1/1
# What `make run` judges of torch: operators that it gets right, and some of which waivers say what it does.
FIRST := tanh_backward softmax_backward layer_norm_backward embedding_dense_backward max_pool2d_with_indices_backward
OP ?= $(basename $(notdir $(wildcard specs/claims/*.yaml)))
BIN := .venv/bin
STAMP := .venv/installed
# pytest rewrites what it imports, asserts and all: without bytecode each process does that again, for seven seconds.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest

.PHONY: run run-all test test-slow test-catalogue test-torch same-verdicts soak soak-hostile bench bench-run bench-isolation bench-judge bench-size bench-report bench-findings bench-bundle bench-fuzz bench-gate \
	bench-gaming bench-watch bench-wrong-kernels bench-kernel-mistakes bench-judge-kernels bench-regimes bench-corners bench-scale check-specs soak-oracles claims operator \
	figures soak-fuzz soak-programs test-ray docs words tutorials first-bug site matrix picture shots lint power power-quick power-generated power-corners soak-catalogue release-check \
	loopback bytecode clean

# The exit codes 0 and 1 are verdicts on what was judged: the run itself worked.
judge = @$(BIN)/aclnn-cts run $(1) --workers $(JOBS) || [ $$? -eq 1 ]

# A first minute: what torch computes, then a kernel with a planted mistake (adapters/example.py) and the finding that shows it.
run: $(STAMP)
	$(call judge,$(FIRST) --adapter torch)
	@echo
	$(call judge,softmax_backward --adapter aclnn_cts.adapters.example:OneBlockSoftmax)

run-all: $(STAMP)
	$(call judge,--adapter torch $(ARGS))

# Where the environment forbids bytecode (PYTHONDONTWRITEBYTECODE), each process that a test starts would compile 250
# modules: a fifth of a short command's time. The folders behind the links are named too: compileall follows none.
bytecode: $(STAMP)
	@$(BIN)/python -m compileall -q aclnn_cts aclnn_cts/*/

# The operators that stand for the catalogue, `tested`, and the `others` (tests/support/targets.py).
operators = $$($(BIN)/python -m tests.support.targets $(1))
# The reference may have 8 GiB: a formula that takes more for a call of a plan fails there, before it ends a user's machine.
on-reference = ulimit -v 8388608; $(PYTEST) -n $(JOBS) aclnn_cts/suites --aclnn-adapter reference --aclnn-op "$(call operators,$(1))"
# torch returns no statuses; tests/adapters/test_torch_waivers.py calls it as the suite of statuses would.
on-torch = $(PYTEST) -n $(JOBS) aclnn_cts/suites --aclnn-adapter torch -k "not test_statuses" --aclnn-op "$(call operators,$(1) torch)"

test: $(STAMP) bytecode
	$(PYTEST) -n $(JOBS) -m "not slow and not catalogue" tests
	$(call on-reference,tested)
	$(call on-torch,tested)

# Campaigns, crashes, kills and sanitizers, and the suites of the other operators: what `make test` leaves out. CI runs
# them too, and of the suites one of two parts: `OTHERS=1/2`.
test-slow: $(STAMP) bytecode
	$(PYTEST) -n $(JOBS) -m "slow and not catalogue" tests
	$(call on-reference,others) --aclnn-shard $(OTHERS)
	$(call on-torch,others) --aclnn-shard $(OTHERS)

# The tests of operators and products that test and test-slow leave out, since another one of the family proves the same.
test-catalogue: $(STAMP) bytecode
	$(PYTEST) -n $(JOBS) -m catalogue tests

# Another torch, `make test-torch TORCH=2.15.0`: do its kernels fail as the waivers say, and in no other way? pip may fetch
# a CUDA build of several gigabytes.
test-torch:
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; set -ex; \
	$(PYTHON) -m venv "$$folder"; \
	grep -v '^torch==' constraints.txt >"$$folder/constraints.txt"; \
	"$$folder/bin/python" -m pip install --quiet --constraint "$$folder/constraints.txt" 'torch==$(TORCH)' '.[dev]'; \
	"$$folder/bin/python" -m pytest -n $(JOBS) tests/adapters/test_torch_waivers.py tests/docs/test_findings_page.py; \
	"$$folder/bin/python" -m pytest -n $(JOBS) aclnn_cts/suites --aclnn-adapter torch

# Lint of all specs, audit of those with claims where DOCUMENTS names the folder of the public documents, check of all oracles.
check-specs: $(STAMP)
	@printf '%s\n' 'oracle check $(ARGS) --workers $(JOBS) --calls $(CALLS)' 'spec lint' \
		$(if $(DOCUMENTS),'spec audit --documents "$(DOCUMENTS)"') | xargs -L 1 -P 2 $(BIN)/aclnn-cts

# The oracle checks with ten thousand calls each, which `ops` asks for; `ARGS=--changed` leaves out what is recorded.
soak-oracles: $(STAMP)
	@$(BIN)/aclnn-cts oracle check --workers $(JOBS) --record $(ARGS)

# The claims files, made of the specs and of the documents in the folder DOCUMENTS: of all operators, or of `OP=STEM`.
claims: $(STAMP)
	@set -e; for stem in $(OP); do \
	document="$(DOCUMENTS)/$$(sed -n 's/^operator: *//p' "specs/$$stem.yaml").md"; \
	$(BIN)/aclnn-cts spec audit "$$stem" --document "$$document" -o "specs/claims/$$stem.yaml"; done

# All that is made of a new operator's spec and oracle: `make operator OP=STEM DOCUMENTS=FOLDER`.
operator: $(STAMP)
	@test "$(words $(OP))" = 1 || { echo 'operator: expected OP=STEM, the stem of its two files'; exit 2; }
	$(BIN)/aclnn-cts spec lint specs/$(OP).yaml
	$(MAKE) --no-print-directory claims OP=$(OP)
	$(BIN)/aclnn-cts oracle check $(OP) --record
	$(BIN)/aclnn-cts spec corners $(OP) --record
	$(BIN)/python -m tools.generate $(OP)
	$(PYTEST) -n $(JOBS) --snapshot-update -m "slow or catalogue" tests -k "$(OP)- or $(OP)] or $$(sed -n 's/^operator: *//p' specs/$(OP).yaml)"

# A thousand injected crashes, hangs and faults; a quarter of an hour where nothing else runs.
soak: $(STAMP)
	@$(BIN)/python -m tests.soak.isolation $(ARGS)

# Ten minutes of mutated files of every kind, then the hostile adapters; `make test` reads a few hundred.
soak-hostile: $(STAMP)
	@$(BIN)/python -m tests.soak.hostile $(ARGS)

bench: $(STAMP)
	@$(BIN)/python -m benchmarks.bench $(ARGS)

# What users wait for: start, runs, first findings, crashes, campaigns. An hour; less with `ARGS='--only WORD'`.
bench-run: $(STAMP) bytecode
	@$(BIN)/python -m benchmarks.bench_run $(ARGS)

# Whether this tree concludes what the commit BASE concluded, as fast: half an hour, and less with `ARGS='--only runs'`.
same-verdicts: $(STAMP)
	@$(BIN)/python -m benchmarks.same_verdicts --base "$(BASE)" $(ARGS)

bench-isolation: $(STAMP)
	@$(BIN)/python -m benchmarks.isolation $(ARGS)

# What a large output costs the harness, and where the time goes.
bench-size: $(STAMP)
	@$(BIN)/python -m benchmarks.bench_size $(ARGS)

bench-judge: $(STAMP)
	@$(BIN)/python -m benchmarks.bench_judge $(ARGS)

bench-report: $(STAMP)
	@$(BIN)/python -m benchmarks.bench_report $(ARGS)

bench-bundle: $(STAMP)
	@$(BIN)/python -m benchmarks.bench_bundle $(ARGS)

bench-fuzz: $(STAMP)
	@$(BIN)/python -m benchmarks.bench_fuzz $(ARGS)

# How many findings a generated mutant is, whether two stay two, and whether stated conditions are right. Half an hour.
bench-findings: $(STAMP)
	@$(BIN)/python -m benchmarks.findings $(ARGS)

# Which cheats of tests/gaming are caught, each with 20 seeds: most of an hour; `ARGS='--seeds 2'` takes minutes.
bench-gaming: $(STAMP)
	@$(BIN)/python -m benchmarks.gaming $(ARGS)

# Kernels with mistakes that public reports describe: which rules accept them, and what ours finds. Ten minutes.
bench-wrong-kernels: $(STAMP)
	@$(BIN)/python -m benchmarks.wrong_kernels $(ARGS)

bench-kernel-mistakes: $(STAMP)
	@$(BIN)/python -m benchmarks.kernel_mistakes $(ARGS)

# What `check` and `judge` cost: the first call, a small one, large ones.
bench-judge-kernels: $(STAMP)
	@$(BIN)/python -m benchmarks.bench_candidates $(ARGS)

# What watching a training costs a step, of a small transformer and a small CNN on the CPU.
bench-watch: $(STAMP)
	@$(BIN)/python -m benchmarks.bench_watch $(ARGS)

bench-regimes: $(STAMP)
	@$(BIN)/python -m benchmarks.planned_regimes $(ARGS)

bench-corners: $(STAMP)
	@$(BIN)/python -m benchmarks.planned_corners $(ARGS)

bench-scale: $(STAMP)
	@$(BIN)/python -m benchmarks.bench_scale $(ARGS)

bench-gate: $(STAMP)
	@$(BIN)/python -m benchmarks.bench_gate $(ARGS)

# All figures of README.md and docs/ that are measured (but those of `make power` and `make bench-judge`), and the pages
# with them. Half an hour, on a machine with nothing else to do.
figures: $(STAMP)
	$(BIN)/python -m benchmarks.bench --store
	$(BIN)/python -m benchmarks.bench_fuzz --store
	$(BIN)/python -m benchmarks.bench_gate --store
	$(BIN)/python -m benchmarks.bench_scale --store
	$(BIN)/python -m benchmarks.bench_report --store
	$(BIN)/python -m benchmarks.bench_bundle --store
	$(BIN)/python -m benchmarks.isolation --store
	$(BIN)/python -m benchmarks.planned_regimes --store
	$(BIN)/python -m benchmarks.planned_corners --store
	$(BIN)/python -m benchmarks.bench_size --store
	$(BIN)/python -m tools.generate

# A program for every finding of every seeded fault, run with the fault and without. Hours: `--every N` takes some.
soak-programs: $(STAMP)
	@$(BIN)/python -m tests.soak.programs $(ARGS)

# 50 kills at random moments; `make test` does 5.
soak-fuzz: $(STAMP)
	ACLNN_CTS_KILLS=50 $(BIN)/pytest tests/runs/campaign/test_kills.py -k random_moments

# On a local Ray cluster, whose package `make test` does without.
test-ray: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[ray]'
	ACLNN_CTS_RAY=1 $(BIN)/pytest tests/workers/test_ray_dispatch.py

docs: $(STAMP)
	$(BIN)/python -m tools.generate

# How many words the pages have, section by section.
words: $(STAMP)
	@$(BIN)/python -m tools.words

# What the commands of docs/tutorials/ print; `ARGS=first-bug` runs one.
tutorials: $(STAMP)
	$(BIN)/python -m tools.tutorials $(ARGS)

# From nothing to the first bug of your own: two commands and one file, timed in a clean folder.
first-bug:
	@PYTHON=$(PYTHON) .ci/first_bug

# The pages in build/site, which open without a server. The packages that make them are no part of `dev`.
site: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[site]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# What the reference, the software device and torch come to, as a page in build/matrix: five minutes.
matrix: $(STAMP)
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	for adapter in reference loopback torch; do \
		$(BIN)/aclnn-cts run --adapter $$adapter --workers $(JOBS) -o "$$folder/$$adapter" $(ARGS) || [ $$? -ne 2 ] || exit 2; \
	done; \
	$(BIN)/aclnn-cts matrix "$$folder"/* -o build/matrix --force

picture: $(STAMP)
	rm -rf build/picture
	$(BIN)/python -m tools.capture docs/images/run.svg -- run softmax_backward --adapter aclnn_cts.adapters.example:OneBlockSoftmax -o build/picture

# Reports and matrix in both languages and pages of the site, 400 and 1280 pixels, light and dark, in build/shots; and the
# README's pictures. A page that is wider than its window is an error.
shots: site
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	cd "$$folder"; \
	"$(CURDIR)/$(BIN)/aclnn-cts" run --adapter torch -o torch >/dev/null || [ $$? -eq 1 ] || exit 1; \
	"$(CURDIR)/$(BIN)/aclnn-cts" run $(FIRST) --adapter reference -o reference >/dev/null || exit 1; \
	PYTHONPATH="$(CURDIR)" "$(CURDIR)/$(BIN)/python" -m tools.screenshot torch reference \
		-o "$(CURDIR)/build/shots" --site "$(CURDIR)/build/site" --readme

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict -p aclnn_cts
	$(BIN)/mypy --strict tests conftest.py .ci benchmarks tools
	$(BIN)/python -m tools.stale_names

# Whether this checkout can be released: committed, described, current, and a wheel that works alone.
release-check: $(STAMP)
	@$(BIN)/python -m tools.release_check

# The kill matrix of a release: every seeded fault with 5 seeds, every decoy with 10. Most of an hour; `SEEDS=1
# DECOY_SEEDS=2` takes ten minutes, `power-quick` less.
power: $(STAMP)
	$(BIN)/aclnn-cts faults --profile standard --seeds $(SEEDS) --decoy-seeds $(DECOY_SEEDS) --workers $(JOBS) -o benchmarks/figures/power/kill_matrix.json $(ARGS)

power-quick: $(STAMP) bytecode
	$(BIN)/aclnn-cts faults --min-kill-rate 0.98 --workers $(JOBS) $(ARGS)

# Mutants that the hash of the commit draws, on both profiles: half an hour. Decoys run on quick alone.
power-generated: $(STAMP)
	$(BIN)/aclnn-cts mutants --profile quick --number 24 --workers $(JOBS) -o benchmarks/figures/power/generated_quick.json $(ARGS)
	$(BIN)/aclnn-cts mutants --profile standard --number 24 --decoys 0 --min-kill-rate 0.97 --workers $(JOBS) \
		-o benchmarks/figures/power/generated_standard.json $(ARGS)

# Mutants that are wrong at one corner alone. A quarter of an hour; `ARGS='--profile quick'` takes minutes, `ARGS='--op OPERATOR'` less.
power-corners: $(STAMP)
	@$(BIN)/python -m benchmarks.corner_mutants $(ARGS)

# Every operator on the standard profile: the reference conforms, what torch fails is waived, decoys pass, mutants are found.
# Hours; `OP="STEM STEM"` runs some operators.
soak-catalogue: $(STAMP) bytecode
	$(BIN)/aclnn-cts run $(OP) --profile standard --adapter reference --workers $(JOBS)
	$(BIN)/aclnn-cts run $(OP) --profile standard --adapter torch --workers $(JOBS)
	$(BIN)/aclnn-cts mutants $(OP:%=--op %) --profile standard --number 24 --min-kill-rate 0.98 --workers $(JOBS)
	$(BIN)/python -m benchmarks.corner_mutants $(OP:%=--op %)

loopback: $(STAMP)
	@$(BIN)/python -m aclnn_cts.adapters.loopback_build

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache

# The stamp is written last: an installation that was interrupted is done again.
$(STAMP): pyproject.toml constraints.txt
	@echo "Installing torch, pytest and what aclnn-cts needs into .venv: several minutes where packages must be fetched."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[torch,report,dev]'
	@du -sh .venv | cut -f1 | sed 's/.*/Installed: & in .venv./'
	@touch $@
