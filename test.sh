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

run_tests() {
    install_mail_server
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

# The program that these hold to is the one that the tests were just run with.
heading "The OpenAPI document, as other people's tools see it"
tests/openapi/check

heading "The pages, in a browser"
tests/pages/check

heading "MCP, as the official clients see it"
tests/mcp/check
