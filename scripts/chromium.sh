#!/usr/bin/env bash
# Provides Chromium for the tests of the console: fetched once into a cache folder, never installed.
#
#   chromium.sh prepare       fetch it unless there is one (once)
#   chromium.sh path          prepare, then print the path of the program
#   chromium.sh clean         delete the cache
#
# The browser is an installed Chromium, Chrome or Edge, if there is one; else, on Debian and Ubuntu, the .debs of this release and of the
# libraries that this machine lacks, unpacked into the cache. apt checks their hashes against the signed Release file. Nothing is
# installed or upgraded, and no root is needed.
#
# CAIRN_TEST_CHROMIUM        a browser to use instead
# CAIRN_TEST_CHROMIUM_HOME   the cache folder
set -euo pipefail
umask 022

log()  { printf '[test chromium] %s\n' "$*" >&2; }
die()  { log "error: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

if [ "$(id -u)" = 0 ]; then HOME_DIR=${CAIRN_TEST_CHROMIUM_HOME:-/var/cache/cairn-test/chromium}
else HOME_DIR=${CAIRN_TEST_CHROMIUM_HOME:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/cairn-test/chromium}; fi
ROOT=$HOME_DIR/root
PROGRAM=$HOME_DIR/chromium

INSTALLED=("$(command -v chromium || true)" "$(command -v chromium-browser || true)" "$(command -v google-chrome || true)"
  "$(command -v microsoft-edge || true)" "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
  "/Applications/Chromium.app/Contents/MacOS/Chromium" "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge")

runs() { [ -x "$1" ] && "$1" --version >/dev/null 2>&1; }

find_browser() {
  local found
  if [ -n "${CAIRN_TEST_CHROMIUM:-}" ]; then
    [ -x "$CAIRN_TEST_CHROMIUM" ] || die "CAIRN_TEST_CHROMIUM=$CAIRN_TEST_CHROMIUM is not a program"
    printf '%s\n' "$CAIRN_TEST_CHROMIUM"; return 0
  fi
  for found in "${INSTALLED[@]}" "$PROGRAM"; do
    if runs "$found"; then printf '%s\n' "$found"; return 0; fi
  done
  return 1
}

fetch() {
  local tool need=""
  for tool in apt-get dpkg-deb; do have "$tool" || need="$need $tool"; done
  [ -z "$need" ] || die "there is no Chromium, Chrome or Edge here, and fetching one needs:$need.
  Install one of them (macOS: brew install --cask google-chrome), or set CAIRN_TEST_CHROMIUM to its path."
  WORK=$(mktemp -d "${TMPDIR:-/tmp}/cairn-chromium.XXXXXX")
  trap 'rm -rf "$WORK"' EXIT
  mkdir -p "$WORK"/{lists,cache/archives}/partial
  # Private apt state: the machine's sources and list of installed packages are read, and nothing of it is written.
  local -a apt=(-o "Dir::State::lists=$WORK/lists" -o "Dir::Cache=$WORK/cache" -o Acquire::Languages=none -o APT::Sandbox::User=
    -o Acquire::Retries=3 -o Debug::NoLocking=1 -qq)
  log "downloading Chromium and what it needs (unpacked privately, not installed)"
  apt-get "${apt[@]}" update >&2 || die "apt-get update failed: is the package mirror reachable?"
  apt-get "${apt[@]}" install --download-only --no-install-recommends --yes chromium fonts-liberation >&2 || die "downloading Chromium failed"
  rm -rf "$ROOT.new"; mkdir -p "$ROOT.new"
  local deb; for deb in "$WORK"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$ROOT.new"; done
  rm -rf "$ROOT"; mv "$ROOT.new" "$ROOT"
  write_program
}

# The unpacked program finds its libraries and fonts by environment variables.
write_program() {
  local folder libraries=""
  # Some libraries are in a folder of their own, such as pulseaudio/.
  for folder in "$ROOT"/usr/lib/*-linux-gnu* "$ROOT"/lib/*-linux-gnu* "$ROOT"/usr/lib/*-linux-gnu*/pulseaudio; do [ ! -d "$folder" ] || libraries="$libraries$folder:"; done
  {
    printf '<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig>\n<dir>%s</dir>\n<cachedir>%s</cachedir>\n' \
      "$ROOT/usr/share/fonts" "$HOME_DIR/fonts"
    printf '<match><test name="family" qual="any"><string>monospace</string></test><edit name="family" mode="prepend" binding="strong"><string>Liberation Mono</string></edit></match>\n'
    printf '<match><edit name="family" mode="append_last"><string>Liberation Sans</string></edit></match>\n</fontconfig>\n'
  } > "$HOME_DIR/fonts.conf"
  printf '#!/bin/sh\nexport LD_LIBRARY_PATH="%s${LD_LIBRARY_PATH:-}" FONTCONFIG_FILE="%s"\nexec "%s" "$@"\n' \
    "$libraries" "$HOME_DIR/fonts.conf" "$ROOT/usr/lib/chromium/chromium" > "$PROGRAM"
  chmod 755 "$PROGRAM"
}

prepare() {
  mkdir -p "$HOME_DIR"
  if have flock; then exec 9>"$HOME_DIR/lock"; flock 9; fi
  find_browser >/dev/null || fetch
  find_browser >/dev/null || die "Chromium was unpacked but does not run: install the package chromium, or set CAIRN_TEST_CHROMIUM"
}

case ${1:-} in
  prepare) prepare;;
  path)    prepare; find_browser;;
  clean)   rm -rf "$HOME_DIR";;
  *) sed -n '2,/^set -e/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2;;
esac
