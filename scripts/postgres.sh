#!/usr/bin/env bash
# Runs a PostgreSQL with pgvector for the tests: fetched once into a cache folder, on loopback, never installed.
#
#   postgres.sh prepare            fetch and build missing parts (once)
#   postgres.sh acquire HOLDER     start the shared test server unless it runs, register HOLDER (a process id), print its URL
#   postgres.sh release HOLDER     unregister HOLDER; the server stops after the last one
#   postgres.sh start | stop       the same by hand: run it until stop
#   postgres.sh status             exit 0 and print the URL if the shared server runs
#   postgres.sh create NAME        a private, durable (fsync on) server for a test that stops or kills it; print its URL
#   postgres.sh boot|halt|destroy NAME    start it again, stop it cleanly, remove it
#   postgres.sh clean              stop everything and delete the cache
#
# The server is an installed PostgreSQL with pgvector >= 0.8, if there is one; else, on Debian and Ubuntu, the .debs of
# this release unpacked into the cache, with pgvector compiled from Debian's source package, whose hashes apt checks
# against the signed Release file. Nothing is installed or upgraded, and no root is needed. Every server has its own data
# folder and a free port of its own, so a PostgreSQL on 5432 or anywhere else is neither used nor touched.
#
# CAIRN_TEST_POSTGRES_HOME    the cache folder
# CAIRN_TEST_POSTGRES_MIRROR  the Debian mirror for the pgvector source; default: the one this machine's apt uses
set -euo pipefail
umask 022

LAYOUT=1            # raise it when the cache's contents change shape
MIN_PGVECTOR=0.8.0  # iterative scans need 0.8
SUITE=trixie        # the oldest Debian release whose pgvector is new enough

log()  { printf '[test postgres] %s\n' "$*" >&2; }
die()  { log "error: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# PostgreSQL refuses to run as root: an unprivileged account runs it then, and needs access to every parent folder.
if [ "$(id -u)" = 0 ]; then
  HOME_DIR=${CAIRN_TEST_POSTGRES_HOME:-/var/cache/cairn-test/postgres}
  if id postgres >/dev/null 2>&1; then ACCOUNT=postgres; else ACCOUNT=nobody; fi
  as_server() { (cd / && exec setpriv --reuid="$ACCOUNT" --regid="$(id -g "$ACCOUNT")" --clear-groups env HOME=/ "$@"); }
  give() { chown -R "$ACCOUNT" "$@"; }
else
  HOME_DIR=${CAIRN_TEST_POSTGRES_HOME:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/cairn-test/postgres}
  as_server() { "$@"; }
  give() { :; }
fi
ROOT=$HOME_DIR/root BINFILE=$HOME_DIR/bindir TEMPLATE=$HOME_DIR/template CLUSTERS=$HOME_DIR/clusters HOLDERS=$HOME_DIR/holders

# --- locking --------------------------------------------------------------------------------------
lock() {
  have flock || die "the flock command is needed (util-linux; macOS: brew install flock), or set CAIRN_TEST_POSTGRES_URL"
  mkdir -p "$HOME_DIR" "$HOLDERS" "$CLUSTERS"; chmod 755 "$HOME_DIR" "$CLUSTERS"
  exec 9>"$HOME_DIR/lock"; flock 9
}

# --- installation ---------------------------------------------------------------------------------
newer_or_same() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n1)" = "$2" ]; }

installed_bindir() {
  local d share version
  for d in $(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin \
               2>/dev/null | sort -rV) $(! have pg_config || pg_config --bindir); do
    [ -x "$d/postgres" ] && [ -x "$d/initdb" ] && [ -x "$d/pg_config" ] || continue
    share=$("$d/pg_config" --sharedir 2>/dev/null) || continue
    [ -f "$share/extension/vector.control" ] || continue
    version=$(sed -n "s/^default_version *= *'\(.*\)'/\1/p" "$share/extension/vector.control")
    newer_or_same "$version" "$MIN_PGVECTOR" || continue
    printf '%s\n' "$d"; return 0
  done
  return 1
}

own_mirror() {
  local release; release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null | awk -v r="$release" '$2 == r { print $1; exit }'
}

unpacked_libraries() { local d; for d in "$1"/usr/lib/*-linux-gnu*; do [ ! -d "$d" ] || printf '%s:' "$d"; done; }

missing_libraries() { # ROOT BIN
  LD_LIBRARY_PATH=$(unpacked_libraries "$1") ldd "$2/postgres" "$2/initdb" | awk '/not found/ { print $1 }' | sort -u | tr '\n' ' '
}

fetch_and_build() {
  local need="" tool
  for tool in apt-get apt-cache dpkg-deb gcc make tar gzip; do have "$tool" || need="$need $tool"; done
  [ -z "$need" ] || die "there is no PostgreSQL with pgvector >= $MIN_PGVECTOR here, and fetching one needs:$need.
  Install pgvector (Debian 13: apt install postgresql-17-pgvector; macOS: brew install pgvector), or run a server, such as
    docker run -d -p 127.0.0.1:54320:5432 -e POSTGRES_HOST_AUTH_METHOD=trust pgvector/pgvector:pg17
  and set CAIRN_TEST_POSTGRES_URL=postgres://postgres@127.0.0.1:54320/postgres"
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg mirror=${CAIRN_TEST_POSTGRES_MIRROR:-$(own_mirror)}
  [ -f "$keyring" ] || die "$keyring is missing: install debian-archive-keyring (it verifies the pgvector source)"
  [ -n "$mirror" ] || die "this machine's apt names no mirror: set CAIRN_TEST_POSTGRES_MIRROR"

  WORK=$(mktemp -d "${TMPDIR:-/tmp}/cairn-postgres.XXXXXX"); chmod 755 "$WORK"
  trap 'rm -rf "$WORK"' EXIT
  mkdir -p "$WORK"/{debs/libs,src} "$WORK"/{bin,source}/{lists,cache/archives}/partial
  # Private apt state: the machine's sources are read, its lists and cache are not written.
  local -a quiet=(-o Acquire::Languages=none -o APT::Sandbox::User= -o Acquire::Retries=3 -qq)
  local -a apt_bin=(-o "Dir::State::lists=$WORK/bin/lists" -o "Dir::Cache=$WORK/bin/cache" "${quiet[@]}")
  local -a apt_source=(-o "Dir::Etc::sourcelist=$WORK/source.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$WORK/source/lists"
    -o "Dir::Cache=$WORK/source/cache" "${quiet[@]}")
  printf 'deb-src [signed-by=%s] %s %s main\n' "$keyring" "$mirror" "$SUITE" > "$WORK/source.list"
  log "reading package lists"
  apt-get "${apt_bin[@]}" update >&2 || die "apt-get update failed: is the package mirror reachable?"
  apt-get "${apt_source[@]}" update >&2 || die "apt-get update of the $SUITE sources failed: is the package mirror reachable?"

  local major
  major=$(apt-cache "${apt_bin[@]}" depends --no-recommends --no-suggests postgresql 2>/dev/null \
            | sed -n 's/.*Depends: postgresql-\([0-9][0-9]*\)$/\1/p' | head -n1)
  [ -n "$major" ] || die "this release has no 'postgresql' package"
  log "downloading PostgreSQL $major (unpacked privately, not installed)"
  (cd "$WORK/debs" && apt-get "${apt_bin[@]}" download "postgresql-$major" "postgresql-client-$major" "postgresql-server-dev-$major" libpq5 >&2) \
    || die "downloading PostgreSQL failed"
  rm -rf "$ROOT.new"; mkdir -p "$ROOT.new"
  local deb; for deb in "$WORK"/debs/*.deb; do dpkg-deb -x "$deb" "$ROOT.new"; done
  local bin=$ROOT.new/usr/lib/postgresql/$major/bin missing
  missing=$(missing_libraries "$ROOT.new" "$bin")
  if [ -n "$missing" ]; then
    log "adding libraries this machine lacks: $missing"
    local package; local -a wanted=()
    while read -r package; do
      case $package in libc6|libgcc-s1|libc-bin|libllvm*|libperl*|libpq5) ;; *) wanted+=("$package");; esac
    done < <(apt-cache "${apt_bin[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
      "postgresql-$major" | sed -n 's/.*Depends: \(lib[a-z0-9.+-]*\)$/\1/p' | sort -u)
    # One by one: a virtual package has nothing to download and must not stop the others.
    for package in "${wanted[@]}"; do (cd "$WORK/debs/libs" && apt-get "${apt_bin[@]}" download "$package" >/dev/null 2>&1) || true; done
    for deb in "$WORK"/debs/libs/*.deb; do dpkg-deb -x "$deb" "$ROOT.new"; done
    local folder; for folder in "$ROOT.new"/lib/*-linux-gnu*; do
      [ ! -d "$folder" ] || { mkdir -p "$ROOT.new/usr/lib/${folder##*/}"; cp -a "$folder/." "$ROOT.new/usr/lib/${folder##*/}/"; }
    done
    missing=$(missing_libraries "$ROOT.new" "$bin")
    [ -z "$missing" ] || die "still missing: $missing"
  fi

  log "downloading and compiling pgvector"
  (cd "$WORK/src" && apt-get "${apt_source[@]}" source --download-only pgvector >&2 && tar xzf pgvector_*.orig.tar.gz) || die "downloading pgvector failed"
  local src; src=$(find "$WORK/src" -mindepth 1 -maxdepth 1 -type d | head -n1)
  # OPTFLAGS= : no -march=native, so that a cached build runs on every machine. with_llvm=no : no clang needed.
  local -a make=(make -C "$src" -s PG_CONFIG="$bin/pg_config" with_llvm=no OPTFLAGS=)
  "${make[@]}" -j2 >"$WORK/make.log" 2>&1 && "${make[@]}" install >>"$WORK/make.log" 2>&1 \
    || { tail -n 30 "$WORK/make.log" >&2; die "pgvector did not compile"; }
  rm -rf "$ROOT"; mv "$ROOT.new" "$ROOT"
  printf '%s\n' "$ROOT/usr/lib/postgresql/$major/bin" > "$BINFILE"
}

pg() { # PROGRAM ARGS... : runs one of PostgreSQL's programs, without our lock, as the server's account
  local program=$1; shift
  local libraries; libraries=$(unpacked_libraries "$ROOT")
  as_server env ${libraries:+"LD_LIBRARY_PATH=$libraries"} LC_ALL=C "$(cat "$BINFILE")/$program" "$@" 9>&-
}

prepare() {
  [ "$(cat "$HOME_DIR/layout" 2>/dev/null)" != $LAYOUT ] || [ ! -x "$(cat "$BINFILE" 2>/dev/null)/postgres" ] || return 0
  local bin
  if bin=$(installed_bindir); then log "using the installed PostgreSQL in $bin"; printf '%s\n' "$bin" > "$BINFILE"; else fetch_and_build; fi
  # Creating a data folder takes seconds and copying one is fast, so a tested one is kept as a template.
  rm -rf "$TEMPLATE"; mkdir -p "$TEMPLATE"; give "$TEMPLATE"; chmod 700 "$TEMPLATE"
  pg initdb -D "$TEMPLATE" -U postgres -A trust -E UTF8 --locale=C --no-sync >/dev/null || die "initdb failed"
  make_cluster proof fast
  prove "$(port_of proof)"
  drop_cluster proof
  printf '%s\n' $LAYOUT > "$HOME_DIR/layout"
}

# Creates the extension and an HNSW index, and runs a query with an iterative scan.
prove() { # PORT
  local answer
  answer=$(pg psql -h 127.0.0.1 -p "$1" -U postgres -d postgres -XAtq -v ON_ERROR_STOP=1 <<'SQL'
create extension vector;
create table proof (id int, e vector(3));
insert into proof select i, array[i, i % 7, 1]::vector from generate_series(1, 200) i;
create index on proof using hnsw (e vector_l2_ops);
set enable_seqscan = off;
set hnsw.iterative_scan = relaxed_order;
select 'PostgreSQL ' || current_setting('server_version') || ', pgvector ' || (select extversion from pg_extension where extname = 'vector') ||
       ', nearest ' || (select id from proof where id > 100 order by e <-> '[1,1,1]' limit 1);
SQL
) || die "the server does not answer as it should"
  case $answer in *"nearest 10"[0-9]) log "ready: ${answer%, nearest*}";; *) die "unexpected answer: $answer";; esac
}

# --- clusters -------------------------------------------------------------------------------------
data_of() { printf '%s/%s' "$CLUSTERS" "$1"; }
port_of() { sed -n 's/^port = //p' "$(data_of "$1")/cairn.conf"; }
url_of()  { printf 'postgres://postgres@127.0.0.1:%s/postgres\n' "$(port_of "$1")"; }
runs()    { [ -f "$(data_of "$1")/postmaster.pid" ] && pg pg_ctl -D "$(data_of "$1")" status >/dev/null 2>&1; }

# Below the range from which the system takes ports for outgoing connections.
free_port() {
  local port; for _ in $(seq 50); do
    port=$((15000 + RANDOM % 17000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { printf '%s\n' "$port"; return 0; }
  done
  die "found no free port"
}

make_cluster() { # NAME fast|durable
  local data log_file; data=$(data_of "$1"); log_file=$data.log
  rm -rf "$data"; cp -R "$TEMPLATE" "$data"; : > "$log_file"; give "$data" "$log_file"; chmod 700 "$data"
  for _ in 1 2 3 4 5; do # another process may take the port between the look and the start
    {
      printf 'port = %s\n' "$(free_port)"
      printf "listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\njit = off\nmax_connections = 300\nshared_buffers = 128MB\n"
      # A fast cluster is not durable, on purpose.
      [ "$2" = durable ] || printf 'fsync = off\nsynchronous_commit = off\nfull_page_writes = off\nmaintenance_work_mem = 256MB\nmax_wal_size = 4GB\n'
    } > "$data/cairn.conf"
    grep -q "^include 'cairn.conf'" "$data/postgresql.conf" || printf "include 'cairn.conf'\n" >> "$data/postgresql.conf"
    ! boot_cluster "$1" || return 0
  done
  tail -n 20 "$log_file" >&2; drop_cluster "$1"; die "the server did not start"
}

boot_cluster() { # NAME
  local data; data=$(data_of "$1")
  pg pg_ctl -D "$data" -l "$data.log" -w -t 60 start >/dev/null 2>&1
}

drop_cluster() { # NAME
  ! runs "$1" || pg pg_ctl -D "$(data_of "$1")" -m immediate -w stop >/dev/null 2>&1 || true
  rm -rf "$(data_of "$1")" "$(data_of "$1").log"
}

# --- the shared server ----------------------------------------------------------------------------
# A holder is a process id, or a name that stays until it is released. A dead process holds nothing.
forget_the_dead() {
  local holder; for holder in "$HOLDERS"/*; do
    case ${holder##*/} in ''|*[!0-9]*) ;; *) kill -0 "${holder##*/}" 2>/dev/null || rm -f "$holder";; esac
  done
}

acquire() { # HOLDER
  lock; prepare; forget_the_dead
  runs shared || make_cluster shared fast
  : > "$HOLDERS/$1"
  url_of shared
}

release() { # HOLDER
  [ -d "$HOLDERS" ] || return 0
  lock; rm -f "$HOLDERS/$1"; forget_the_dead
  [ -n "$(ls -A "$HOLDERS")" ] || ! runs shared || { drop_cluster shared; log "stopped"; }
}

name() { case ${1:-} in ''|*[!a-z0-9-]*) die "usage: $0 ${COMMAND} NAME (small letters, digits, dashes)";; *) printf '%s' "$1";; esac; }

COMMAND=${1:-}
case $COMMAND in
  prepare) lock; prepare;;
  acquire) acquire "$(name "${2:-}")";;
  release) release "$(name "${2:-}")";;
  start)   acquire person;;
  stop)    [ ! -d "$HOLDERS" ] || { lock; rm -f "$HOLDERS"/*; [ ! -s "$BINFILE" ] || drop_cluster shared; };;
  status)  [ -s "$BINFILE" ] && runs shared && url_of shared;;
  create)  lock; prepare; make_cluster "$(name "${2:-}")" durable; url_of "$2";;
  boot)    boot_cluster "$(name "${2:-}")" || { tail -n 20 "$(data_of "$2").log" >&2; die "the server did not start"; };;
  halt)    pg pg_ctl -D "$(data_of "$(name "${2:-}")")" -m fast -w stop >/dev/null;;
  destroy) drop_cluster "$(name "${2:-}")";;
  clean)   [ ! -d "$HOME_DIR" ] || { lock; [ ! -s "$BINFILE" ] || for data in "$CLUSTERS"/*/; do [ ! -d "$data" ] || drop_cluster "$(basename "$data")"; done; rm -rf "$HOME_DIR"; };;
  *) sed -n '2,/^set -e/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2;;
esac
