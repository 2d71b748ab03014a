# One line a target. What each needs beyond Go stands in CONTRIBUTING.md.
.PHONY: all test race lint generate fuzz compare gofsbench conformance soak package site man

all: test
test:        ; go test ./...
race:        ; go list ./... | grep -v /conformance | xargs go test -race
lint:        ; go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(shell cat .golangci.version) run ./...
generate:    ; find . -name '*_xdr.go' -o -name '*_xdr_test.go' -o -name '*.pb.go' -o -name '*.connect.go' | xargs rm -f && go generate ./...
fuzz:        ; .ci/fuzz 60s
compare:     ; cd compare && go test -run '^$$' -bench . -count 5 ./xdr && go run ./clients && go run ./servers && go run ./localio
gofsbench:   ; cd compare && go run ./gofsbench
conformance: ; NFSBOX_REQUIRE=ganesha,libnfs,root,vm go test -count 1 -timeout 20m -run 'Interop|Suite' -v ./...
soak:        ; NFSBOX_SOAK=1 go test -count 1 -timeout 120m ./... && go test -race -count 10 -timeout 60m ./... && .ci/fuzz 5m
package:     ; packaging/build
site:        ; packaging/site/build
man:         ; go run ./cmd/nfsbox man dist/man
