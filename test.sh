#!/usr/bin/env bash
# Everything that must hold, with one command. Installs what is missing; takes parts of tests' names to run only those.
#
#   ./test.sh                         what must hold before each commit
#   ./test.sh --long                  everything, before a release: CONTRIBUTING.md says what only this run proves
#   ./test.sh NAME...                 the tests with one of these parts in their names
#   ./test.sh --exact NAME            the test of that name
#   ./test.sh --only PART             formatting, dependencies, build, documentation or install
#
# What failed is named in the last lines, with the command that repeats it alone. Nothing that failed is run again by itself.
#
# The build comes first and alone. Then the tests on SQLite, those on PostgreSQL, the browser and the other outside tools run beside each
# other: most of them wait for processes, sockets and timers most of the time.
# A part that fails does not stop the others that can still run; the run fails at the end.
set -euo pipefail
cd "$(dirname "$0")"

long=
if [[ ${1:-} == --long ]]; then
    long=yes
    shift
    # More generated histories than in each run.
    export UNIONHALL_REWARD_HISTORIES=${UNIONHALL_REWARD_HISTORIES:-200} UNIONHALL_TEST_CASES=${UNIONHALL_TEST_CASES:-12}
fi

# Clippy compiles our own crates for the tests: what it finds fails the build, and nothing is checked and then compiled again.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
# A missing server fails a test. Without this variable such a test says what it needs and ends: `cargo test` by itself.
export UNIONHALL_TEST_SERVERS=required

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

dependencies() {
    if cargo deny --version >/dev/null 2>&1; then
        cargo deny --offline check licenses bans sources
    else
        echo "cargo-deny is not installed; the test once::dependencies holds everything to the same deny.toml"
    fi
    echo "advisories are not checked: their database is fetched by 'cargo deny check advisories' where there is a network"
}

documentation() {
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items --lib --bin bench --examples
}

# The bench too: what nobody builds is broken. Clippy's `incompatible_msrv` holds our own code to the `rust-version` of
# Cargo.toml, and a test does so for every dependency.
build() { cargo test --locked --workspace --no-run; }

# tests_on BACKEND [NAME...]: all tests on SQLite with limits in memory. On PostgreSQL and Redis the tests of tests/on_postgres again; with
# names, or in a long run, all that depend on the store or the limiter. A test with `once::` in its path does not, or brings its own
# stores: tests/it/once/mod.rs. BACKEND-alone: those of a long run that need the machine for themselves, one after another.
tests_on() {
    local backend=${1%-alone} at_once=$threads
    local status=0 report=target/nextest/$1/junit.xml said=$target/test-output/$1.tests which=(--workspace) names=("${@:2}")
    # The plans come after all others: see `plans`.
    local skipped=(--skip growth::plans::)
    if [[ $1 == *-alone ]]; then
        names=(long::) at_once=1
    elif [[ ! $long || ${#names[@]} -eq 0 ]] && [[ ${names[0]:-} != --exact ]]; then
        skipped+=(--skip long::)
    fi
    if [[ $backend == postgres ]]; then
        which=(--test it)
        skipped+=(--skip once::)
        if [[ ! $long ]] && ((${#names[@]} == 0)); then
            mapfile -t names < <(repeated_tests)
            ((${#names[@]} > 0)) || return 1
            names=(--exact "${names[@]}")
        fi
    fi
    rm -f "$report"
    export UNIONHALL_TEST_STATEMENTS=$statements
    if has_nextest; then
        UNIONHALL_TEST_BACKEND=$backend cargo nextest run --locked --no-tests=pass --profile "$1" --test-threads "$at_once" "${which[@]}" -- \
            "${skipped[@]}" "${names[@]}" || status=$?
    else
        UNIONHALL_TEST_BACKEND=$backend cargo test --locked --no-fail-fast "${which[@]}" -- "${skipped[@]}" "${names[@]}" 2>&1 |
            tee "$said" || status=$?
    fi
    return "$status"
}

# How many tests of a backend run at once. Most wait for a server of their own more than they compute.
threads=$((2 * $(nproc)))

has_nextest() { cargo nextest --version >/dev/null 2>&1; }

# repeated_tests: the names in tests/on_postgres. Fails if one of them is no test.
repeated_tests() {
    local known unknown
    known=$(cargo test --locked --quiet --test it -- --list 2>/dev/null | sed -n 's/: test$//p')
    unknown=$(grep -v '^#' tests/on_postgres | grep -vxFf <(echo "$known")) || true
    [[ -z $unknown ]] || { echo "tests/on_postgres names what is no test: $unknown" >&2 && return 1; }
    grep -v '^#' tests/on_postgres
}

# What the tests ran on PostgreSQL, for the last of them: it looks at the plan of each statement.
statements=$(realpath -m "$target")/test-output/statements

plans() {
    UNIONHALL_TEST_STATEMENTS=$statements cargo test --locked --test it -- --exact growth::plans::every_statement_that_ran_finds_its_rows_by_an_index
}

# forget_results: of the run before.
forget_results() {
    mkdir -p "$target/test-output"
    rm -f target/nextest/*/junit.xml "$target"/test-output/*.{tests,failed,ended} "$statements"
}

# failed_tests PART: their names, as nextest's report or cargo's output has them.
failed_tests() {
    python3 - "target/nextest/$1/junit.xml" "$target/test-output/$1.tests" <<'PYTHON'
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

# name_failed_tests PART: each with the command that repeats it.
name_failed_tests() {
    local names name backend=${1%-alone}
    names=$(failed_tests "$1")
    if [[ -z $names ]]; then
        printf '%s\n    %s\n' "the tests on $backend have not come to their end" "UNIONHALL_TEST_BACKEND=$backend ./test.sh ''"
        return
    fi
    for name in $names; do
        printf '%s\n    %s\n' "$name, on $backend" "UNIONHALL_TEST_BACKEND=$backend ./test.sh --exact $name"
    done
}

# checks NAME: tests/NAME/check, which writes down which of its checks failed.
checks() {
    local flags=()
    [[ ! $long || $1 != pages ]] || flags=(--all)
    FAILED_CHECKS=$(realpath "$target")/test-output/$1.failed "tests/$1/check" "${flags[@]}"
}

# name_failed_part PART: what failed of it, with the command that repeats it.
name_failed_part() {
    case $1 in
    sqlite* | postgres*) name_failed_tests "$1" ;;
    formatting | dependencies | documentation | build | install)
        printf '%s\n    %s\n' "${title[$1]}" "./test.sh --only $1"
        ;;
    # It needs what all tests wrote down.
    plans) printf '%s\n    %s\n' "growth::plans::every_statement_that_ran_finds_its_rows_by_an_index" "./test.sh" ;;
    *)
        sed "s/^/$1: /" "$target/test-output/$1.failed" 2>/dev/null || echo "${title[$1]}"
        echo "    tests/$1/check"
        ;;
    esac
}

slowest_tests() {
    has_nextest || { echo "cargo-nextest is not installed; without it nobody knows"; return; }
    python3 - target/nextest/*/junit.xml <<'PYTHON'
import pathlib, sys, xml.etree.ElementTree
tests = []
for path in map(pathlib.Path, sys.argv[1:]):
    if path.exists():
        for test in xml.etree.ElementTree.parse(path).iter("testcase"):
            tests.append((float(test.get("time")), path.parent.name.removesuffix("-alone"), test.get("classname"), test.get("name")))
for time, backend, binary, name in sorted(tests, reverse=True)[:20]:
    print(f"{time:9.1f} s  {name} ({backend}{'' if binary == 'unionhall::it' else ', ' + binary})")
PYTHON
}

if [[ ${1:-} == --only ]]; then
    install_compiler
    case ${2:-} in
    formatting | dependencies | documentation | build) "$2" ;;
    install) install_everything ;;
    *) echo "--only takes formatting, dependencies, build, documentation or install" >&2 && exit 2 ;;
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

# How long each part took the last time: a line "SECONDS CPU-SECONDS NAME" for each. Short and long runs are remembered apart.
times=$target/test-times${long:+-long}
began=$SECONDS
names=()
declare -A took title
failed=()

in_words() { if (($1 < 60)); then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi; }

last_time() { sed -n "s/ [0-9]* $1\$//p" "$times" 2>/dev/null || true; }

# plan NAME TITLE: a part of this run.
plan() {
    local last
    names+=("$1")
    title[$1]=$2
    last=$(last_time "$1")
    printf '%14s  %s\n' "${last:+$(in_words "$last")}" "$2"
}

# measured NAME COMMAND...: runs it and writes down "SECONDS CPU-SECONDS STATUS". The command is no condition, so that `set -e` holds
# inside it. CPU time is that of all processes that were waited for, the compiler's and the servers' too.
measured() {
    local name=$1 start=$SECONDS status
    shift
    set +e
    (
        trap 'times >"$target/test-output/$name.cpu"' EXIT
        set -e
        "$@"
    )
    status=$?
    set -e
    local cpu
    cpu=$(tr 'ms' '  ' <"$target/test-output/$name.cpu" | awk '{ all += $1 * 60 + $2 + $3 * 60 + $4 } END { printf "%d", all }')
    echo "$((SECONDS - start)) $cpu $status" >"$target/test-output/$name.ended"
}

# ended NAME: takes down how it ended.
ended() {
    local seconds=0 cpu=0 status=1
    read -r seconds cpu status <"$target/test-output/$1.ended" || true
    took[$1]="$seconds $cpu"
    ((status == 0)) || failed+=("$1")
}

# part NAME COMMAND...: runs it here.
part() {
    heading "${title[$1]}"
    measured "$@"
    ended "$1"
}

# beside NAME COMMAND...: runs it in the background, in a process group of its own; `join NAME` waits for it and shows what it said.
beside() {
    set -m
    measured "$@" >"$target/test-output/$1" 2>&1 </dev/null &
    running[$!]=$1
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
    ended "$1"
}

has_failed() { [[ " ${failed[*]} " == *" $1 "* ]]; }

forget_results
heading "What will be done, and how long it took the last time"
plan install "Installing what is missing (beside the build)"
plan formatting "Formatting"
plan dependencies "Dependencies"
plan build "Compiling the program and its tests, with clippy"
[[ ! $long ]] || plan documentation "Documentation"
# What runs beside each other: the longest first.
tests=(pages)
plan pages "The pages, in a browser"
[[ $backend == postgres ]] || { plan sqlite "Tests, on SQLite" && tests+=(sqlite); }
[[ $backend == sqlite ]] || { plan postgres "Tests again, on PostgreSQL and Redis" && tests+=(postgres); }
# One after another, beside the others.
tools=(openapi mcp docs examples)
plan openapi "The OpenAPI document, as other people's tools see it"
plan mcp "MCP, as the official clients see it"
plan docs "The reference, every snippet as it stands"
plan examples "The examples, against the sandbox"
if [[ $long ]]; then
    tools+=(package)
    plan package "What a release ships: the Debian package on a copy of this machine, container files, bill of materials"
fi
# What measures times, or makes millions of rows.
alone=()
if [[ $long ]]; then
    [[ $backend == postgres ]] || { plan sqlite-alone "Long tests, one after another, on SQLite" && alone+=(sqlite-alone); }
    [[ $backend == sqlite ]] || { plan postgres-alone "Long tests, one after another, on PostgreSQL and Redis" && alone+=(postgres-alone); }
fi
[[ $backend != both ]] || plan plans "What the tests ran on PostgreSQL, planned on filled tables"
last=$(last_time all)
[[ -z $last ]] || printf '%14s  in all\n' "$(in_words "$last")"

outside_tools() {
    local tool
    for tool in "${tools[@]}"; do measured "$tool" checks "$tool" >"$target/test-output/$tool" 2>&1; done
}

install_compiler
beside install install_everything
part formatting formatting
part dependencies dependencies
part build build
[[ ! $long ]] || part documentation documentation
join install

if has_failed build || has_failed install; then
    echo "The tests and the checks are not run: there is nothing to run them with."
else
    start_servers
    heading "The tests and the checks run beside each other; what each says is shown when it has ended"
    # The outside tools use the program that the tests are run with.
    for name in "${tests[@]}"; do
        if [[ $name == pages ]]; then beside pages checks pages; else beside "$name" tests_on "$name"; fi
    done
    running_tools=
    set -m
    outside_tools &
    running[$!]=tools running_tools=$!
    set +m
    for name in "${tests[@]}"; do join "$name"; done
    wait "$running_tools" || true
    unset "running[$running_tools]"
    for name in "${tools[@]}"; do join "$name"; done
    for name in "${alone[@]}"; do part "$name" tests_on "$name"; done
    [[ $backend != both ]] || part plans plans

    heading "The slowest twenty tests"
    slowest_tests
fi

heading "How long it took, and the CPU time; the tests and checks ran beside each other"
: >"$times.new"
for name in "${names[@]}"; do
    if [[ -n ${took[$name]:-} ]]; then
        read -r seconds cpu <<<"${took[$name]}"
        printf '%14s  %6s s CPU  %s\n' "$(in_words "$seconds")" "$cpu" "${title[$name]}$(! has_failed "$name" || echo ': FAILED')"
        echo "$seconds $cpu $name" >>"$times.new"
    else
        # What was not run keeps its time, and so does the whole.
        whole=$(last_time all)
        grep " $name\$" "$times" >>"$times.new" 2>/dev/null || true
    fi
done
printf '%14s  in all\n' "$(in_words $((SECONDS - began)))"
echo "${whole-$((SECONDS - began))} 0 all" >>"$times.new"
mv "$times.new" "$times"

if ((${#failed[@]} > 0)); then
    heading "FAILED, each with the command that repeats it"
    for name in "${failed[@]}"; do name_failed_part "$name"; done
    exit 1
fi
