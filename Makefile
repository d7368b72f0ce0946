# Two commands matter: `make demo` and `make test`. The others are their parts.

CARGO ?= cargo
# The lock file is part of the project: a build that would change it fails instead.
LOCKED := --locked
# Shared with fuzz/, which is a workspace of its own: its dependencies are built once.
TARGET := $(or $(CARGO_TARGET_DIR),target)
# netrek-mail.txt holds the same captures as the other netrek files.
EXAMPLES := $(sort $(filter-out examples/netrek-mail.txt, \
	$(wildcard examples/*.txt examples/*.pcap examples/*.pcapng examples/*.pcap.gz)))

.DEFAULT_GOAL := help
.PHONY: help demo test format lint unit docs-checked fuzz-smoke frames bench fuzz truth corpus lab docs fmt clean build toolchain tools programs \
	viewer viewer-test viewer-lint

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|' 2>/dev/null \
		|| grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST)

demo: build ## Build tcpwhy and let it explain the captures in examples/
	@for capture in $(EXAMPLES); do \
		printf '\n\n$$ tcpwhy %s\n\n' "$$capture"; \
		$(CARGO) run --quiet --release $(LOCKED) -p tcpwhy -- "$$capture" || exit $$?; \
	done

test: format lint unit docs-checked fuzz-smoke viewer-lint viewer-test ## Everything the project checks
	@echo "All checks passed."

build: toolchain viewer ## The release binary, target/release/tcpwhy
	$(CARGO) build --release $(LOCKED) -p tcpwhy

format: toolchain
	@$(CARGO) fmt --version >/dev/null 2>&1 || { echo "rustfmt is missing. Run: rustup component add rustfmt clippy" >&2; exit 1; }
	$(CARGO) fmt --all --check

lint: toolchain viewer
	@$(CARGO) clippy --version >/dev/null 2>&1 || { echo "clippy is missing. Run: rustup component add rustfmt clippy" >&2; exit 1; }
	$(CARGO) clippy $(LOCKED) --workspace --all-targets -- -D warnings

# INSTA_UPDATE=no: a snapshot that differs fails, and nothing is written into the tree. All failures are told at once.
unit: toolchain programs viewer
	INSTA_UPDATE=no $(CARGO) test $(LOCKED) --workspace --no-fail-fast

# The documentation is for those who work on the code, so links to private items are fine.
docs-checked: toolchain
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" $(CARGO) doc $(LOCKED) --workspace --no-deps --document-private-items

# Every fuzz target on the stable toolchain, briefly: its seeds and the same mutations of them every time.
fuzz-smoke: toolchain
	$(CARGO) test $(LOCKED) --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)

frames: toolchain ## Captures of the corpus with frames dropped, doubled, moved and cut: RUNS (200000) of them
	RUNS=$${RUNS:-200000} $(CARGO) test $(LOCKED) --manifest-path fuzz/Cargo.toml --target-dir $(TARGET) --test frames -- --nocapture

fuzz: ## Fuzz each target for SECONDS_EACH (60); needs cargo-fuzz and a nightly toolchain
	@cargo fuzz --version >/dev/null 2>&1 || { echo "cargo-fuzz is missing. Run: cargo install cargo-fuzz" >&2; exit 1; }
	@for target in $$(cargo +nightly fuzz list); do \
		echo "== $$target"; \
		cargo +nightly fuzz run "$$target" -- -max_total_time=$${SECONDS_EACH:-60} || exit 1; \
	done

# The pages are embedded in the binary. Where Node or the packages that build them cannot be had, it is built without them.
PACKAGES := viewer/node_modules/.package-lock.json
viewer: ## The pages of --html and serve, viewer/dist
	@if scripts/node true && $(MAKE) --no-print-directory $(PACKAGES); then \
		$(MAKE) --no-print-directory viewer/dist/serve.html; else \
		printf '\n*** tcpwhy is built WITHOUT the interactive page (--html, serve). ***\n\n' >&2; fi

VIEWER_SOURCES := docs/report.schema.json $(shell find viewer \( -name node_modules -o -name .node -o -name dist \
	-o -name generated -o -name tests -o -name test-results \) -prune -o -type f -print)

$(PACKAGES): viewer/package-lock.json
	cd viewer && ../scripts/node npm ci --no-fund --no-audit
	@touch $@

# serve.html is the last that the build writes.
viewer/dist/serve.html: $(PACKAGES) $(VIEWER_SOURCES)
	cd viewer && ../scripts/node npm run build

WITHOUT_PACKAGES = [ ! -e $(PACKAGES) ] && echo "SKIPPED $@: viewer/ has no packages" >&2

viewer-lint: viewer
	@$(WITHOUT_PACKAGES) || { cd viewer && ../scripts/node npm run check; }

# The pages that it opens are written by the debug binary that the unit tests use: built with the same features, it is
# not built twice. TCPWHY=PATH takes another one.
viewer-test: toolchain viewer ## The page's own tests, in a browser too (Chromium)
	@scripts/need optional chromium chromium
	@scripts/need optional pdftotext poppler-utils
	@$(WITHOUT_PACKAGES) || { cd viewer && ../scripts/node npm test; }
	@[ -n "$(TCPWHY)" ] || $(CARGO) test $(LOCKED) --workspace --no-run
	@$(WITHOUT_PACKAGES) || { cd viewer && \
		TCPWHY=$(abspath $(or $(TCPWHY),$(TARGET)/debug/tcpwhy)) ../scripts/node npm run test:browser; }

bench: build tools ## Generate the benchmark captures and time tcpwhy beside tshark, tcptrace and tcpdump
	$(CARGO) run --release $(LOCKED) -p tcpwhy-benches

truth: toolchain ## How much time is booked right, by CONNECTIONS (100000) simulated connections
	TRUTH_CONNECTIONS=$${CONNECTIONS:-100000} $(CARGO) test $(LOCKED) -p tcpwhy-diagnose --test truth -- --nocapture the_analysis

corpus: build ## Record the labelled corpus again (root; some 15 minutes) and its score
	$(TARGET)/release/tcpwhy lab corpus tests/corpus
	UPDATE_SCORE=1 $(CARGO) test $(LOCKED) -p tcpwhy-lab --test score the_analysis
	$(TARGET)/release/tcpwhy lab score tests/corpus

lab: build ## Run every experiment and write docs/experiments.md (some 10 minutes)
	$(TARGET)/release/tcpwhy lab all --format markdown > docs/experiments.md.new
	mv docs/experiments.md.new docs/experiments.md

docs: toolchain ## Write docs/rules/ from the rules' own texts, docs/plots/ and docs/simulator.md
	UPDATE_DOCS=1 $(CARGO) test $(LOCKED) -p tcpwhy --test docs_in_step

fmt: toolchain ## Format the code
	$(CARGO) fmt --all

clean: ## Remove everything built
	$(CARGO) clean
	rm -rf fuzz/target benches/captures viewer/node_modules viewer/.node viewer/dist/*.html viewer/src/generated

toolchain:
	@command -v $(CARGO) >/dev/null 2>&1 || { echo "cargo is missing. Install Rust: https://rustup.rs" >&2; exit 1; }
	@scripts/need required cc gcc libc6-dev

# The benchmark's real traffic is recorded by tcpdump; without it that capture is left out, which is said.
tools:
	@scripts/need optional tcpdump tcpdump

# Programs that nobody here wrote, against which the tests hold tcpwhy; Go is used where it is.
programs:
	@scripts/need optional python3 python3
	@scripts/need optional curl curl
	@scripts/need optional redis-server redis-server
	@scripts/need optional nginx nginx-light
	@scripts/need optional node nodejs
	@scripts/need optional java default-jdk-headless
	@scripts/need optional tshark tshark
	@scripts/need optional tcptrace tcptrace
