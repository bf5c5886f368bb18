#!/bin/sh
# Makes heading.woff2 and OFL.txt beside this script again.
# Wants npm and Python 3 with venv, and their registries.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
python3 -m venv venv
venv/bin/pip install --quiet fonttools==4.68.0 brotli==1.2.1
npm pack --silent @expo-google-fonts/zilla-slab@0.4.1 >/dev/null
tar -xzf ./*.tgz
venv/bin/python "$here/subset.py" package/700Bold/ZillaSlab_700Bold.ttf "$here"
cp package/LICENSE_FONT "$here/OFL.txt"
