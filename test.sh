#!/usr/bin/env bash
# Everything that must hold, with one command. Installs what is missing; takes parts of tests' names to run only those.
#
#   ./test.sh [--long] [NAME...]      --long: what takes too long for every run, too
set -euo pipefail
cd "$(dirname "$0")"

skipped=(--skip long::)
if [[ ${1:-} == --long ]]; then
    skipped=()
    shift
fi

heading() { printf '\n== %s\n' "$*"; }
source tests/servers.sh

# SQLite and ring are built from C.
if ! command -v cc >/dev/null; then
    heading "Installing a C compiler"
    $([ "$(id -u)" = 0 ] || echo sudo) sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev'
fi

# The mail server that the tests send through.
install_mail_server() {
    local tools=${CARGO_TARGET_DIR:-target}/tools/mail
    if ! cmp -s tests/mail/requirements.txt "$tools/installed"; then
        heading "Installing the mail server of the tests"
        python3 -c 'import ensurepip' 2>/dev/null ||
            $([ "$(id -u)" = 0 ] || echo sudo) sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends python3 python3-venv'
        rm -rf "$tools" && mkdir -p "$tools"
        python3 -m venv "$tools/venv"
        "$tools/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r tests/mail/requirements.txt
        cp tests/mail/requirements.txt "$tools/installed"
    fi
}

# cargo_test ARGUMENT...: as cargo test takes them.
cargo_test() {
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run --locked --no-tests=pass "$@"
    else
        cargo test --locked "$@"
    fi
}

# run_tests [NAME...]: all of them on SQLite with limits in memory; then what a caller or an operator can see again, on
# PostgreSQL and Redis. A test with `once::` in its path needs no server or is about one machine: tests/it/once/mod.rs.
run_tests() {
    local backend=${UNIONHALL_TEST_BACKEND:-both} again
    install_mail_server
    start_servers
    if [[ $backend != postgres ]]; then
        UNIONHALL_TEST_BACKEND=sqlite cargo_test --workspace -- "${skipped[@]}" "$@"
    fi
    if [[ $backend != sqlite ]]; then
        again=$(cargo test --quiet --locked --test it -- --list --skip once:: "${skipped[@]}" "$@" | grep -c ': test$' || true)
        [[ $again != 0 ]] || return 0
        heading "$again of these tests again, on PostgreSQL and Redis"
        UNIONHALL_TEST_BACKEND=postgres cargo_test --test it -- --skip once:: "${skipped[@]}" "$@"
    fi
}

if [ $# -gt 0 ]; then
    run_tests "$@"
    exit
fi

heading "Formatting"
cargo fmt --check && echo "as it should be"

# The bench too: what nobody builds is broken. Clippy's `incompatible_msrv` holds our own code to the `rust-version` of
# Cargo.toml, and a test does so for every dependency.
heading "Clippy, on the whole workspace"
cargo clippy --locked --workspace --all-targets -- -D warnings

heading "Dependencies"
if cargo deny --version >/dev/null 2>&1; then
    cargo deny --offline check licenses bans sources
else
    echo "cargo-deny is not installed; the test once::dependencies holds everything to the same deny.toml"
fi
echo "advisories are not checked: their database is fetched by 'cargo deny check advisories' where there is a network"

heading "Documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items

heading "Tests, on SQLite"
run_tests

# The program that these hold to is the one that the tests were just run with.
heading "The OpenAPI document, as other people's tools see it"
tests/openapi/check

heading "The pages, in a browser"
tests/pages/check

heading "MCP, as the official clients see it"
tests/mcp/check

heading "The reference, every snippet as it stands"
tests/docs/check

heading "The examples, against the sandbox"
tests/examples/check
