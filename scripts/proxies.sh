#!/usr/bin/env bash
# Provides nginx, Caddy and PgBouncer for the tests: fetched once into a cache folder, never installed.
#
#   proxies.sh prepare        fetch missing programs (once)
#   proxies.sh path NAME      prepare, then print the path of nginx, caddy or pgbouncer
#   proxies.sh clean          delete the cache
#
# A program is the installed one, if there is one; else, on Debian and Ubuntu, the .deb of this release unpacked into the cache. apt
# checks its hash against the signed Release file. Nothing is installed or upgraded, and no root is needed.
#
# CAIRN_TEST_PROXIES_HOME   the cache folder
set -euo pipefail
umask 022

log()  { printf '[test proxies] %s\n' "$*" >&2; }
die()  { log "error: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

if [ "$(id -u)" = 0 ]; then HOME_DIR=${CAIRN_TEST_PROXIES_HOME:-/var/cache/cairn-test/proxies}
else HOME_DIR=${CAIRN_TEST_PROXIES_HOME:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/cairn-test/proxies}; fi
ROOT=$HOME_DIR/root

PROGRAMS="nginx caddy pgbouncer"

version_of() { case $1 in nginx) "$2" -v;; caddy) "$2" version;; pgbouncer) "$2" --version;; esac >/dev/null 2>&1; }

find_program() { # NAME
  local found
  for found in "$(command -v "$1" || true)" "/usr/sbin/$1" "$ROOT/$1" "$ROOT/usr/sbin/$1" "$ROOT/usr/bin/$1"; do
    if [ -x "$found" ] && version_of "$1" "$found"; then printf '%s\n' "$found"; return 0; fi
  done
  return 1
}

fetch() { # NAME...
  local tool need=""
  for tool in apt-get dpkg-deb; do have "$tool" || need="$need $tool"; done
  [ -z "$need" ] || die "missing: $*. Fetching them needs:$need. Install them (macOS: brew install $*)."
  WORK=$(mktemp -d "${TMPDIR:-/tmp}/cairn-proxies.XXXXXX")
  trap 'rm -rf "$WORK"' EXIT
  mkdir -p "$WORK"/{lists,cache/archives}/partial "$WORK/debs" "$ROOT"
  # Private apt state: the machine's sources are read, its lists and cache are not written.
  local -a apt=(-o "Dir::State::lists=$WORK/lists" -o "Dir::Cache=$WORK/cache" -o Acquire::Languages=none -o APT::Sandbox::User=
    -o Acquire::Retries=3 -qq)
  log "downloading $* (unpacked privately, not installed)"
  apt-get "${apt[@]}" update >&2 || die "apt-get update failed: is the package mirror reachable?"
  (cd "$WORK/debs" && apt-get "${apt[@]}" download "$@" >&2) || die "downloading $* failed"
  # The libraries of PgBouncer that a small machine lacks. Its wrapper finds them in the cache.
  case " $* " in *" pgbouncer "*)
    local package; for package in $(apt-cache "${apt[@]}" depends pgbouncer | sed -n 's/.*Depends: \(libc-ares[a-z0-9.+-]*\|libevent[a-z0-9.+-]*\)$/\1/p'); do
      (cd "$WORK/debs" && apt-get "${apt[@]}" download "$package" >&2) || die "downloading $package failed"
    done
    printf '#!/bin/sh\nfor d in "%s"/usr/lib/*-linux-gnu*; do LD_LIBRARY_PATH="$d:$LD_LIBRARY_PATH"; done\nexport LD_LIBRARY_PATH\nexec "%s/usr/sbin/pgbouncer" "$@"\n' \
      "$ROOT" "$ROOT" > "$ROOT/pgbouncer"
    chmod 755 "$ROOT/pgbouncer";;
  esac
  local deb; for deb in "$WORK"/debs/*.deb; do dpkg-deb -x "$deb" "$ROOT"; done
}

prepare() {
  mkdir -p "$HOME_DIR"
  if have flock; then exec 9>"$HOME_DIR/lock"; flock 9; fi
  local name; local -a missing=()
  for name in $PROGRAMS; do find_program "$name" >/dev/null || missing+=("$name"); done
  [ ${#missing[@]} = 0 ] || fetch "${missing[@]}"
  for name in $PROGRAMS; do
    find_program "$name" >/dev/null || die "$name was unpacked but does not run: install the package $name"
  done
}

case ${1:-} in
  prepare) prepare;;
  path)    case ${2:-} in nginx|caddy|pgbouncer) prepare; find_program "$2";; *) die "usage: $0 path nginx|caddy|pgbouncer";; esac;;
  clean)   rm -rf "$HOME_DIR";;
  *) sed -n '2,/^set -e/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2;;
esac
