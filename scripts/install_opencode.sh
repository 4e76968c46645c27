#!/bin/sh
# Install the OpenCode that tools/opencode pins into a folder, and prove that it starts.
# usage: install_opencode.sh FOLDER        the program is then FOLDER/node_modules/.bin/opencode
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
command -v npm >/dev/null || { echo "npm is needed to install OpenCode: install Node.js 20 or newer" >&2; exit 1; }

mkdir -p "$folder"
cp "$here/tools/opencode/package.json" "$here/tools/opencode/package-lock.json" \
   "$here/tools/opencode/.npmrc" "$folder/"
cd "$folder"
npm ci --no-audit --no-fund --loglevel=error

wanted=$(node -p 'require("./package.json").dependencies["opencode-ai"]')
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
# A home of its own: OpenCode makes its folders whatever it is asked.
version() {
    env -u XDG_CONFIG_HOME -u XDG_DATA_HOME -u XDG_STATE_HOME -u XDG_CACHE_HOME HOME="$home" \
        node_modules/.bin/opencode --version 2>/dev/null || true
}
if [ "$(version)" != "$wanted" ]; then
    # npm may be set up to run no install scripts: then the program is still a stub.
    (cd node_modules/opencode-ai && node postinstall.mjs)
fi
found=$(version)
if [ "$found" != "$wanted" ]; then
    echo "OpenCode $wanted was installed into $folder, but it says: '$found'" >&2
    exit 1
fi
echo "OpenCode $found in $folder"
