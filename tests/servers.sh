# The servers of the tests. One PostgreSQL and one Redis for all of them, started for this run alone: each test has a
# database and a prefix of its own in them. Sourced by test.sh, which calls start_servers and, at its end, stop_servers. Other
# servers, and more of these, are started by the tests that need them.
#
# They live in a folder for temporary files, where the tests' own data is too: PostgreSQL refuses to run as root, and the
# user it runs as instead may not be let into the folder of the sources.
# shellcheck shell=bash

servers=
postgres_pid=
redis_pid=

# install_servers: Debian's own packages. What these start by themselves is on other ports, and is not used.
install_servers() {
    local missing=() as_root=()
    [[ -n $(postgres_programs) ]] || missing+=(postgresql)
    [[ -x $(on_path redis-server) ]] || missing+=(redis-server)
    [[ -x $(on_path nginx) ]] || missing+=(nginx-light)
    [[ -x $(on_path systemd-analyze) ]] || missing+=(systemd)
    # What moves the clock under a server: tests/it/history.
    compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || missing+=(libfaketime)
    ((${#missing[@]} > 0)) || return 0
    heading "Installing ${missing[*]}"
    [[ $(id -u) == 0 ]] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
    [[ -n $(postgres_programs) ]] || { echo "PostgreSQL's own programs are not where Debian keeps them" >&2; exit 2; }
}

# fetch_programs: Caddy and promtool alone, to check their files with; installed, Caddy would take port 80 of this machine, and
# Prometheus would run.
fetch_programs() {
    fetch_program caddy caddy
    fetch_program prometheus promtool
}

# fetch_program PACKAGE PROGRAM
fetch_program() {
    local tools=${CARGO_TARGET_DIR:-target}/tools/$1 as_root=()
    [[ ! -x $tools/usr/bin/$2 ]] || return 0
    heading "Fetching $2"
    [[ $(id -u) == 0 ]] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    rm -rf "$tools" && mkdir -p "$tools"
    (cd "$tools" && apt-get download -qq "$1" && dpkg -x "$1"_*.deb . && rm "$1"_*.deb)
}

# on_path PROGRAM: servers are in sbin, which is not on everybody's path.
on_path() { PATH=$PATH:/usr/sbin:/sbin command -v "$1" || true; }

# postgres_programs: the folder of the newest PostgreSQL; Debian keeps them apart by version.
postgres_programs() {
    local folder
    folder=$(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)
    [[ ! -x $folder ]] || dirname "$folder"
}

# as_postgres COMMAND...: in this process's place. Whoever kills the shell that waits for the servers ends them too.
as_postgres() {
    local user=()
    [[ $(id -u) != 0 ]] || user=(--reuid=postgres --regid=postgres --clear-groups)
    exec setpriv "${user[@]}" --pdeathsig INT -- "$@"
}

# comes_up PID TEXT FILE: waits until the file has the text, which the server writes there once it can be used; fails once the
# process is gone, or after a minute.
comes_up() {
    for ((i = 0; i < 600; i++)); do
        ! grep -qs -- "$2" "$3" || return 0
        kill -0 "$1" 2>/dev/null || return 1
        sleep 0.1
    done
    echo "waited for a minute for '$2' in $3" >&2
    return 1
}

# on_some_port START TAKEN LOG: starts a server by START PORT, on another port as long as its log says by TAKEN that somebody has that
# one. Only the server can tell: a port that was free a moment ago may not be now. They are below those that the system gives out.
on_some_port() {
    local port
    for ((tries = 0; tries < 50; tries++)); do
        port=$((15000 + RANDOM % 15000))
        ! "$1" "$port" || return 0
        grep -qs -- "$2" "$3" || break
    done
    cat "$3" >&2
    return 1
}

# end PID SIGNAL: and waits until it has ended; not for ever.
end() {
    [[ -n $1 ]] && kill "-$2" "$1" 2>/dev/null || return 0
    for ((i = 0; i < 600; i++)); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

stop_servers() {
    end "$postgres_pid" INT
    end "$redis_pid" TERM
    postgres_pid='' redis_pid=''
    [[ -z $servers ]] || rm -rf "$servers"
    servers=
}

start_postgres() {
    local programs
    programs=$(postgres_programs)
    # Nobody waits for a disk here: what a crash leaves behind is tested on clusters that do.
    (cd "$servers" && as_postgres "$programs/initdb" -D "$servers/postgres" -U postgres --auth=trust --encoding=UTF8 \
        --locale=C.UTF-8 --no-sync >initdb.log 2>&1) || { cat "$servers/initdb.log" >&2; return 1; }
    cat >>"$servers/postgres/postgresql.conf" <<'CONF'
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 400
shared_buffers = 64MB
fsync = off
synchronous_commit = off
full_page_writes = off
max_wal_size = 512MB
autovacuum_naptime = 10min
log_min_messages = fatal
CONF
    on_some_port launch_postgres 'could not create any TCP/IP sockets' "$servers/postgres.log"
}

launch_postgres() {
    (cd "$servers" && as_postgres "$(postgres_programs)/postgres" -D "$servers/postgres" -p "$1") >"$servers/postgres.log" 2>&1 &
    postgres_pid=$!
    comes_up "$postgres_pid" '^ready' "$servers/postgres/postmaster.pid" || { end "$postgres_pid" INT; return 1; }
    export UNIONHALL_TEST_POSTGRES=postgres://postgres@127.0.0.1:$1
}

start_redis() { on_some_port launch_redis 'Address already in use' "$servers/redis.log"; }

launch_redis() {
    setpriv --pdeathsig TERM -- "$(on_path redis-server)" --bind 127.0.0.1 --port "$1" --save '' --appendonly no \
        --dir "$servers" >"$servers/redis.log" 2>&1 &
    redis_pid=$!
    comes_up "$redis_pid" 'Ready to accept connections' "$servers/redis.log" || { end "$redis_pid" TERM; return 1; }
    export UNIONHALL_TEST_REDIS=redis://127.0.0.1:$1
}

# start_servers: exports UNIONHALL_TEST_POSTGRES and UNIONHALL_TEST_REDIS. Whoever calls it has stop_servers called on EXIT.
start_servers() {
    servers=$(mktemp -d "${TMPDIR:-/tmp}/unionhall-servers.XXXXXX")
    [[ $(id -u) != 0 ]] || chown postgres: "$servers"
    start_postgres || { echo "PostgreSQL does not start" >&2; exit 2; }
    start_redis || { echo "Redis does not start" >&2; exit 2; }
}
