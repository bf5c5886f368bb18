#!/usr/bin/env bash
# Everything that must hold, with one command. Installs what is missing; takes parts of tests' names to run only those.
#
#   ./test.sh [--long] [NAME...]      --long: also the tests that take too long for every run
#   ./test.sh --exact NAME            the test of that name
#   ./test.sh --only PART             formatting, dependencies, clippy, documentation, build or install
#
# What failed is named in the last lines, with the command that repeats it alone. Nothing that failed is run again by itself.
#
# The parts run one after another where they would get in each other's way: clippy, the documentation and the build of the tests share
# cargo's lock on target/, and each uses every core, as both runs of the tests do.
# Installing needs the network more than the cores and runs beside the builds. The checks with other people's tools wait for
# processes to start most of the time: the browser runs beside the others.
# A part that fails does not stop the others that can still run; the run fails at the end.
set -euo pipefail
cd "$(dirname "$0")"

skipped=(--skip long::)
if [[ ${1:-} == --long ]]; then
    skipped=()
    shift
fi

target=${CARGO_TARGET_DIR:-target}
backend=${UNIONHALL_TEST_BACKEND:-both}

heading() { printf '\n== %s\n' "$*"; }
source tests/servers.sh

# What runs in the background: its name by its process group.
running=()

end_the_rest() {
    local group
    for group in "${!running[@]}"; do
        kill -TERM -- "-$group" 2>/dev/null || true
    done
    stop_servers
}
trap end_the_rest EXIT
trap 'exit 130' INT TERM

# --- What a part does ------------------------------------------------------------------------------------------------

# SQLite and ring are built from C.
install_compiler() {
    ! command -v cc >/dev/null || return 0
    heading "Installing a C compiler"
    $([ "$(id -u)" = 0 ] || echo sudo) sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev'
}

# The mail server that the tests send through.
install_mail_server() {
    local tools=$target/tools/mail
    if ! cmp -s tests/mail/requirements.txt "$tools/installed"; then
        echo "Installing the mail server of the tests"
        python3 -c 'import ensurepip' 2>/dev/null ||
            $([ "$(id -u)" = 0 ] || echo sudo) sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends python3 python3-venv'
        rm -rf "$tools" && mkdir -p "$tools"
        python3 -m venv "$tools/venv"
        "$tools/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r tests/mail/requirements.txt
        cp tests/mail/requirements.txt "$tools/installed"
    fi
}

install_everything() {
    install_servers
    fetch_programs
    install_mail_server
    local check
    for check in tests/*/check; do
        TOOLS_ONLY=yes "$check"
    done
}

# Every file, also those that `cargo fmt` does not find because a macro declares their modules.
formatting() {
    git ls-files -z '*.rs' | xargs -0 rustfmt --check --edition 2024
    echo "every file is as rustfmt writes it"
}

# The bench too: what nobody builds is broken. Clippy's `incompatible_msrv` holds our own code to the `rust-version` of
# Cargo.toml, and a test does so for every dependency.
clippy() { cargo clippy --locked --workspace --all-targets -- -D warnings; }

dependencies() {
    if cargo deny --version >/dev/null 2>&1; then
        cargo deny --offline check licenses bans sources
    else
        echo "cargo-deny is not installed; the test once::dependencies holds everything to the same deny.toml"
    fi
    echo "advisories are not checked: their database is fetched by 'cargo deny check advisories' where there is a network"
}

# There are no examples: the flag makes cargo choose the features of dependencies as clippy did, so that none is checked twice.
documentation() {
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items --lib --bin bench --examples
}

build() { cargo test --locked --workspace --no-run; }

# cargo_test ARGUMENT...: as cargo test takes them.
cargo_test() {
    if has_nextest; then
        cargo nextest run --locked --no-tests=pass "$@"
    else
        cargo test --locked "$@"
    fi
}

has_nextest() { cargo nextest --version >/dev/null 2>&1; }

# tests_on BACKEND [NAME...]: all tests on SQLite with limits in memory; on PostgreSQL and Redis again what depends on them. A test
# with `once::` in its path does not, or brings its own stores: tests/it/once/mod.rs.
tests_on() {
    local status=0 report=target/nextest/default/junit.xml said=$target/test-output/$1.tests which=(--workspace) once=()
    [[ $1 == sqlite ]] || which=(--test it) once=(--skip once::)
    # It comes after all others: see `plans`.
    once+=(--skip growth::plans::)
    rm -f "$report"
    export UNIONHALL_TEST_STATEMENTS=$statements
    if has_nextest; then
        UNIONHALL_TEST_BACKEND=$1 cargo_test "${which[@]}" -- "${once[@]}" "${skipped[@]}" "${@:2}" || status=$?
        [[ ! -f $report ]] || mv "$report" "target/nextest/default/$1.xml"
    else
        UNIONHALL_TEST_BACKEND=$1 cargo_test --no-fail-fast "${which[@]}" -- "${once[@]}" "${skipped[@]}" "${@:2}" 2>&1 |
            tee "$said" || status=$?
    fi
    return "$status"
}

# What the tests ran on PostgreSQL, for the last of them: it looks at the plan of each statement.
statements=$(realpath -m "$target")/test-output/statements

plans() {
    UNIONHALL_TEST_STATEMENTS=$statements cargo test --locked --test it -- --exact growth::plans::every_statement_that_ran_finds_its_rows_by_an_index
}

# forget_results: of the run before.
forget_results() {
    mkdir -p "$target/test-output"
    rm -f target/nextest/default/{sqlite,postgres}.xml "$target"/test-output/*.{tests,failed} "$statements"
}

# failed_tests BACKEND: their names, as nextest's report or cargo's output has them.
failed_tests() {
    python3 - "target/nextest/default/$1.xml" "$target/test-output/$1.tests" <<'PYTHON'
import pathlib, re, sys, xml.etree.ElementTree
report, said = map(pathlib.Path, sys.argv[1:])
if report.exists():
    tests = xml.etree.ElementTree.parse(report).iter("testcase")
    names = [test.get("name") for test in tests if test.find("failure") is not None or test.find("error") is not None]
else:
    names = re.findall(r"^test (\S+).* \.\.\. FAILED$", said.read_text() if said.exists() else "", re.MULTILINE)
print(*dict.fromkeys(names), sep="\n")
PYTHON
}

# name_failed_tests BACKEND: each with the command that repeats it.
name_failed_tests() {
    local names name
    names=$(failed_tests "$1")
    if [[ -z $names ]]; then
        printf '%s\n    %s\n' "the tests on $1 have not come to their end" "UNIONHALL_TEST_BACKEND=$1 ./test.sh ''"
        return
    fi
    for name in $names; do
        printf '%s\n    %s\n' "$name, on $1" "UNIONHALL_TEST_BACKEND=$1 ./test.sh --exact $name"
    done
}

# checks NAME: tests/NAME/check, which writes down which of its checks failed.
checks() { FAILED_CHECKS=$(realpath "$target")/test-output/$1.failed "tests/$1/check"; }

# name_failed_part PART: what failed of it, with the command that repeats it.
name_failed_part() {
    case $1 in
    sqlite | postgres) name_failed_tests "$1" ;;
    formatting | dependencies | clippy | documentation | build | install)
        printf '%s\n    %s\n' "${title[$1]}" "./test.sh --only $1"
        ;;
    # It needs what both runs wrote down.
    plans) printf '%s\n    %s\n' "growth::plans::every_statement_that_ran_finds_its_rows_by_an_index" "./test.sh" ;;
    *)
        sed "s/^/$1: /" "$target/test-output/$1.failed" 2>/dev/null || echo "${title[$1]}"
        echo "    tests/$1/check"
        ;;
    esac
}

slowest_tests() {
    has_nextest || { echo "cargo-nextest is not installed; without it nobody knows"; return; }
    python3 - target/nextest/default/{sqlite,postgres}.xml <<'PYTHON'
import pathlib, sys, xml.etree.ElementTree
tests = []
for path in map(pathlib.Path, sys.argv[1:]):
    if path.exists():
        for test in xml.etree.ElementTree.parse(path).iter("testcase"):
            tests.append((float(test.get("time")), path.stem, test.get("classname"), test.get("name")))
for time, backend, binary, name in sorted(tests, reverse=True)[:10]:
    print(f"{time:9.1f} s  {name} ({backend}{'' if binary == 'unionhall::it' else ', ' + binary})")
PYTHON
}

if [[ ${1:-} == --only ]]; then
    install_compiler
    case ${2:-} in
    formatting | dependencies | clippy | documentation | build) "$2" ;;
    install) install_everything ;;
    *) echo "--only takes formatting, dependencies, clippy, documentation, build or install" >&2 && exit 2 ;;
    esac
    exit
fi

if [ $# -gt 0 ]; then
    forget_results
    install_compiler
    install_servers
    fetch_programs
    install_mail_server
    start_servers
    failed=()
    [[ $backend == postgres ]] || tests_on sqlite "$@" || failed+=(sqlite)
    [[ $backend == sqlite ]] || { heading "Again, on PostgreSQL and Redis"; tests_on postgres "$@"; } || failed+=(postgres)
    ((${#failed[@]} > 0)) || exit 0
    heading "FAILED, each with the command that repeats it"
    for each in "${failed[@]}"; do name_failed_tests "$each"; done
    exit 1
fi

# --- The run ---------------------------------------------------------------------------------------------------------

# How long each part took the last time: a line "SECONDS NAME" for each.
times=$target/test-times
began=$SECONDS
names=()
declare -A took title
failed=()

in_words() { if (($1 < 60)); then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi; }

last_time() { sed -n "s/ $1\$//p" "$times" 2>/dev/null || true; }

# plan NAME TITLE: a part of this run.
plan() {
    local last
    names+=("$1")
    title[$1]=$2
    last=$(last_time "$1")
    printf '%14s  %s\n' "${last:+$(in_words "$last")}" "$2"
}

# ended NAME SECONDS STATUS
ended() {
    took[$1]=$2
    (($3 == 0)) || failed+=("$1")
}

# part NAME COMMAND...: runs it here. The command is no condition, so that `set -e` holds inside it.
part() {
    local name=$1 start=$SECONDS status
    shift
    heading "${title[$name]}"
    set +e
    (
        set -e
        "$@"
    )
    status=$?
    set -e
    ended "$name" $((SECONDS - start)) "$status"
    return 0
}

# beside NAME COMMAND...: runs it in the background, in a process group of its own; `join NAME` waits for it and shows what it said.
beside() {
    local name=$1
    shift
    mkdir -p "$target/test-output"
    set -m
    (
        start=$SECONDS
        set +e
        (
            set -e
            "$@"
        )
        status=$?
        echo "$((SECONDS - start)) $status" >"$target/test-output/$name.ended"
    ) >"$target/test-output/$name" 2>&1 </dev/null &
    running[$!]=$name
    set +m
}

join() {
    local pid
    for pid in "${!running[@]}"; do
        [[ ${running[$pid]} == "$1" ]] || continue
        wait "$pid" || true
        unset "running[$pid]"
    done
    heading "${title[$1]}"
    cat "$target/test-output/$1"
    # shellcheck disable=SC2046
    ended "$1" $(cat "$target/test-output/$1.ended" 2>/dev/null || echo 0 1)
}

has_failed() { [[ " ${failed[*]} " == *" $1 "* ]]; }

forget_results
heading "What will be done, and how long it took the last time"
plan install "Installing what is missing (beside the builds)"
plan formatting "Formatting"
plan dependencies "Dependencies"
plan clippy "Clippy, on the whole workspace"
plan documentation "Documentation"
plan build "The program and its tests, built"
[[ $backend == postgres ]] || plan sqlite "Tests, on SQLite"
[[ $backend == sqlite ]] || plan postgres "Tests that depend on the store or the limiter again, on PostgreSQL and Redis"
[[ $backend != both ]] || plan plans "What the tests ran on PostgreSQL, planned on filled tables"
plan pages "The pages, in a browser (beside the checks below)"
plan openapi "The OpenAPI document, as other people's tools see it"
plan mcp "MCP, as the official clients see it"
plan docs "The reference, every snippet as it stands"
plan examples "The examples, against the sandbox"
plan package "What a release ships: the Debian package on a copy of this machine, container files, bill of materials"
last=$(last_time all)
[[ -z $last ]] || printf '%14s  in all\n' "$(in_words "$last")"

install_compiler
beside install install_everything
part formatting formatting
part dependencies dependencies
part clippy clippy
part documentation documentation
part build build
join install

if has_failed build || has_failed install; then
    echo "The tests and the checks are not run: there is nothing to run them with."
else
    start_servers
    [[ $backend == postgres ]] || part sqlite tests_on sqlite
    [[ $backend == sqlite ]] || part postgres tests_on postgres
    [[ $backend != both ]] || part plans plans
    # The program that these use is the one that the tests were just run with.
    beside pages checks pages
    part openapi checks openapi
    part mcp checks mcp
    part docs checks docs
    part examples checks examples
    part package checks package
    join pages

    heading "The slowest ten tests"
    slowest_tests
fi

heading "How long it took"
: >"$times.new"
for name in "${names[@]}"; do
    if [[ -n ${took[$name]:-} ]]; then
        printf '%14s  %s%s\n' "$(in_words "${took[$name]}")" "${title[$name]}" "$(! has_failed "$name" || echo ': FAILED')"
        echo "${took[$name]} $name" >>"$times.new"
    else
        # What was not run keeps its time, and so does the whole.
        whole=$(last_time all)
        echo "$(last_time "$name") $name" >>"$times.new"
    fi
done
printf '%14s  in all\n' "$(in_words $((SECONDS - began)))"
echo "${whole-$((SECONDS - began))} all" >>"$times.new"
mv "$times.new" "$times"

if ((${#failed[@]} > 0)); then
    heading "FAILED, each with the command that repeats it"
    for name in "${failed[@]}"; do name_failed_part "$name"; done
    exit 1
fi
