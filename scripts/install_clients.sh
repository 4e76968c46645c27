#!/bin/sh
# Install the MCP clients that tools/clients pins into a folder, and prove that they start.
# usage: install_clients.sh FOLDER        the programs are then in FOLDER/node_modules/.bin
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
command -v npm >/dev/null || { echo "npm is needed to install the clients: install Node.js 20 or newer" >&2; exit 1; }

mkdir -p "$folder"
cp "$here/tools/clients/package.json" "$here/tools/clients/package-lock.json" \
   "$here/tools/clients/.npmrc" "$folder/"
cd "$folder"
npm ci --no-audit --no-fund --loglevel=error

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
# `clean PROGRAM …`: without the caller's settings, and with a home of its own
clean() { env -i PATH="$folder/node_modules/.bin:$PATH" HOME="$home" "$@"; }
if ! clean claude --version >/dev/null 2>&1; then
    # npm may be set up to run no install scripts: then the program is still a stub.
    (cd node_modules/@anthropic-ai/claude-code && node install.cjs)
fi
for program in node claude codex; do
    printf '%s: ' "$program"
    clean "$program" --version 2>/dev/null || { echo "$program does not start in $folder" >&2; exit 1; }
done
