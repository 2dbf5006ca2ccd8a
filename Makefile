# One fixed set of build tags everywhere: another set compiles SQLite again.
export GOFLAGS := -buildvcs=false -tags=sqlite_fts5
# NVIDIA's header marks calls as deprecated that its Go binding still wraps.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations

DATA    ?= alidade-data
ADDR    ?= 127.0.0.1:7717
STUDY   ?= examples/rewards.yaml
TOOL     = go tool -modfile=tools/go.mod
SOURCES  = $(shell find . -name '*.go' -not -name '*_test.go' -not -path './node_modules/*') $(shell find . -path ./node_modules -prune -o \( -name '*.s' -o -name '*.sql' -o -name '*.safetensors' \) -print)
PYTHON   = $(shell find trainer -name '*.py' -o -name '*.tmpl' -o -name 'requirements.txt' -o -name 'tree.txt')
ASSETS   = $(shell find static/src static/css -type f 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help build assets demo serve test test-trl test-all race browser bench check generate stale screenshots clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

build: bin/alidade ## build bin/alidade with its browser bundle

bin/alidade: go.mod go.sum static/dist/app.js $(SOURCES) $(PYTHON)
	go build -o $@ .

assets: static/dist/app.js ## fetch the browser libraries and bundle them

node_modules/.installed: package.json package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

static/dist/app.js: node_modules/.installed $(ASSETS)
	sh static/build.sh

demo: build ## train 4 rewards x 2 seeds for real, watch them live, write report/
	scripts/demo.sh "$(DATA)" "$(STUDY)"

serve: build ## serve the data folder (DATA=alidade-data, ADDR=127.0.0.1:7717)
	bin/alidade serve --data "$(DATA)" --addr "$(ADDR)"

generate: ## regenerate templ code
	$(TOOL) templ generate -log-level error

stale: ## fail when generated code is older than its source
	scripts/stale.sh

check: stale ## formatting, vet, staticcheck, stale generated code
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-ed:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...
	$(TOOL) staticcheck ./...

test: ## all tests a change must pass: checks, race tests, the browser (installs what it needs)
	scripts/prepare.sh
	$(MAKE) build check
	scripts/test.sh
	scripts/test-trl.sh --if-possible

test-all: test ## and the slow drills: long fuzzing, 50 kills, the whole demo
	ALIDADE_SLOW=1 go test -race -count=1 -timeout 60m ./runner/... ./server/...
	scripts/fuzz.sh 10m
	$(MAKE) demo

test-trl: build ## train a tiny language model with the real TRL (installs it: 3 GB)
	scripts/test-trl.sh

bench: build ## the promised numbers, printed with the machine
	scripts/bench.sh

screenshots: build ## pictures of every page of the data folder (after make demo), both themes and widths, into docs/screenshots
	ALIDADE_BIN=$(CURDIR)/bin/alidade ALIDADE_DATA="$(abspath $(DATA))" ALIDADE_SCREENSHOTS=$(CURDIR)/docs/screenshots go test -count=1 -timeout 20m -run TestScreenshots ./server

clean: ## remove what was built (never the data folder)
	rm -rf bin static/dist/* node_modules
