#!/usr/bin/env bash
# Everything that must hold, with one command. Installs what is missing; takes part of a test's name to run only those.
set -euo pipefail
cd "$(dirname "$0")"

heading() { printf '\n== %s\n' "$*"; }

# SQLite and ring are built from C.
if ! command -v cc >/dev/null; then
    heading "Installing a C compiler"
    $([ "$(id -u)" = 0 ] || echo sudo) sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev'
fi

run_tests() {
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run --locked "$@"
    else
        cargo test --locked "$@"
    fi
}

if [ $# -gt 0 ]; then
    run_tests "$@"
    exit
fi

heading "Formatting"
cargo fmt --check && echo "as it should be"

heading "Clippy"
cargo clippy --locked --all-targets -- -D warnings

heading "Documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items

heading "Tests"
run_tests

heading "The OpenAPI document, as other people's tools see it"
cargo build --locked
tests/openapi/check
