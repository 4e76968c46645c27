#!/usr/bin/env bash
# Build both images and try them, without a container engine and without an image registry:
#
#   make test-image [BASE_IMAGE=… NODE_IMAGE=…] [PYTEST_ARGS=…]
#
# Needs root and Debian: buildah builds (and is installed, if it is not there), and the tests run what
# was built in namespaces of their own (tests_image/support/run_container). Without BASE_IMAGE and
# NODE_IMAGE the bases come from ../shared/image/local-base where that is; else the Dockerfile's own
# are pulled. Everything that the tests start lives in one process namespace, and ends with it.
set -euo pipefail
cd "$(dirname "$0")/.."

uv=${UV:?run this by make test-image}
python=$PWD/.venv/bin/python
work=$PWD/.cache/image
maker=${LOCAL_BASE:-../shared/image/local-base}
export STORAGE_DRIVER=${STORAGE_DRIVER:-vfs} BUILDAH_ISOLATION=chroot
if [ "$(id -u)" != 0 ]; then
    echo "make test-image needs root: it mounts images and makes namespaces" >&2
    exit 1
fi

install_packages() {
    local missing=()
    command -v buildah >/dev/null || missing+=(buildah)
    command -v nginx >/dev/null || missing+=(nginx-light)
    command -v ip >/dev/null || missing+=(iproute2)
    [ "${#missing[@]}" = 0 ] && return
    # Debian would start nginx at once; this file says no, for as long as the installation takes.
    local policy=/usr/sbin/policy-rc.d made=
    if [ ! -e "$policy" ]; then
        made=1
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
    fi
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    if [ -n "$made" ]; then rm "$policy"; fi
}

# build TARGET: the image is then localhost/opencode-mcp:TARGET
build() {
    local bases=()
    if [ -n "${BASE_IMAGE:-}" ]; then bases+=(--build-arg "BASE_IMAGE=$BASE_IMAGE"); fi
    if [ -n "${NODE_IMAGE:-}" ]; then bases+=(--build-arg "NODE_IMAGE=$NODE_IMAGE"); fi
    echo "building $1"
    # layers: the second target takes what both share from the first, a second run all that is the same
    buildah bud --quiet --layers --format docker "${bases[@]}" --target "$1" \
        --build-arg "REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)" \
        --tag "localhost/opencode-mcp:$1" . >"$work/$1.log" 2>&1 || { tail -n 40 "$work/$1.log" >&2; exit 1; }
}

containers=()
remove_containers() {
    local one
    for one in "${containers[@]}"; do buildah rm "$one" >/dev/null; done
}
trap remove_containers EXIT

# unpack TARGET: its configuration, its layers' sizes and its files, for the tests
unpack() {
    local image=localhost/opencode-mcp:$1 container
    buildah inspect --type image "$image" >"$work/$1.json"
    rm -f "$work/$1.tar"
    buildah push --quiet "$image" "docker-archive:$work/$1.tar"
    tar --list --verbose --file "$work/$1.tar" >"$work/$1.layers"
    tar --extract --to-stdout --file "$work/$1.tar" manifest.json >"$work/$1.manifest"
    rm "$work/$1.tar"
    container=$(buildah from "$image")
    containers+=("$container")
    ln -sfn "$(buildah mount "$container")" "$work/$1"
}

mkdir -p "$work"
UV_PROJECT_ENVIRONMENT=$work/tools "$uv" sync --frozen --quiet --only-group image
"$work/tools/bin/hadolint" Dockerfile
install_packages
if [ -z "${BASE_IMAGE:-}${NODE_IMAGE:-}" ] && [ -x "$maker" ]; then
    "$maker"
    BASE_IMAGE=localhost/opencode-mcp-python NODE_IMAGE=localhost/opencode-mcp-node
fi
build runtime
build bundled
unpack runtime
unpack bundled

# Its own network: nothing but a loopback, whose ports are all free. Its own processes: whatever
# happens to the tests, what they started is gone with the first process in here.
# shellcheck disable=SC2016
read -ra wanted <<<"${PYTEST_ARGS:-tests_image}"
unshare --net --pid --mount --ipc --fork --kill-child --mount-proc --propagation private -- bash -c '
    set -eu
    ip link set lo up
    "$@" && code=0 || code=$?
    exit "$code"
' tests "$python" -m pytest -p no:xdist -p no:cacheprovider "${wanted[@]}"
