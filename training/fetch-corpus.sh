#!/usr/bin/env bash
# Fetches the training text: source files and descriptions out of Debian packages, which are free software by policy.
# Needs a Debian (bookworm) machine with apt lists. Usage: fetch-corpus.sh DIRECTORY
set -euo pipefail
target=$1
mkdir -p "$target/deb" "$target/src"
cd "$target"

# Short and long description of every package: pairs of a title and the prose that explains it.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1) # the one this machine's apt uses
curl -sSf "${mirror%/}/dists/bookworm/main/i18n/Translation-en.xz" | xz -d > descriptions.txt
apt-cache dumpavail > packages.txt

# A fixed choice of packages: by the md5 of the name, so that it is arbitrary but repeatable.
choose() { # regex, count, maximum size in kB
  awk -v re="$1" -v max="$3" '/^Package:/{p=$2} /^Size:/{s=$2} /^$/{ if (p ~ re && p !~ /-(doc|dbg|dbgsym|data|locales)$/ && s < max*1024) print p }' packages.txt |
    sort -u | while read -r name; do echo "$(echo -n "$name" | md5sum | cut -c1-8) $name"; done | sort | awk -v n="$2" 'NR <= n' | cut -d' ' -f2
}
{
  choose '^python3-' 1600 12000
  choose '^golang-(github|golang|gopkg|google|k8s)-.*-dev$' 450 4000
  choose '^librust-.*-dev$' 500 2000
  choose '^ruby-' 350 4000
  choose '^php-' 200 4000
  choose '^node-' 350 6000
  echo golang-1.19-src libjs-sphinxdoc python3-scipy python3-numpy python3-pandas python3-sklearn-lib python3-sklearn \
    python3-matplotlib python3-sympy python3-networkx python3-django python3-sqlalchemy python3-twisted python3-nltk \
    python3-skimage python3-statsmodels python3-astropy python3-biopython python3-requests python3-flask python3-jinja2 \
    python3-tornado python3-aiohttp python3-celery python3-boto3 python3-xarray python3-dask python3-ipython \
    python3-bokeh python3-sphinx python3-docutils python3-nova python3-neutron python3-cinder ansible-core \
    python3-mercurial mercurial-common calibre-bin python3-notebook python3-paramiko python3-pil python3-opencv \
    python3-psycopg2 python3-redis python3-pymongo python3-tk libpython3.11-stdlib python3-bs4 python3-lxml | tr ' ' '\n'
} | sort -u > chosen.txt

cd deb
xargs -n 40 sh -c 'apt-get download "$@" >/dev/null 2>&1 || for one; do apt-get download "$one" >/dev/null 2>&1 || true; done' _ < ../chosen.txt
for file in *.deb; do
  package=${file%%_*}
  [ -d "../src/$package" ] && continue
  mkdir -p "../src/$package"
  dpkg-deb --fsys-tarfile "$file" | tar x -C "../src/$package" --wildcards --no-anchored \
    '*.py' '*.go' '*.rs' '*.rb' '*.php' '*.js' '*.mjs' '*.ts' '*.md' '*.rst' 'README*' 'changelog*.gz' 2>/dev/null || true
done
