#!/usr/bin/env bash
# Run the tests of the real MCP clients:
#
#   make test-clients [PYTEST_ARGS=…]
#
# Needs Linux on x64, and leave to make namespaces (root has it; elsewhere unprivileged user namespaces
# must be allowed). A network of their own proves that no client needs one, and its ports are all free;
# whatever the tests start is gone with the first process of a process namespace of their own.
set -euo pipefail
cd "$(dirname "$0")/.."

own=(--net --pid --mount --ipc --fork --kill-child --mount-proc --propagation private)
if [ "$(id -u)" != 0 ]; then own=(--user --map-root-user "${own[@]}"); fi
read -ra wanted <<<"${PYTEST_ARGS:-tests_clients}"

# shellcheck disable=SC2016
exec unshare "${own[@]}" -- bash -c '
    set -eu
    python=$1; shift
    "$python" -c "import fcntl, socket, struct
interface = struct.pack(\"16sh\", b\"lo\", 1)  # IFF_UP
fcntl.ioctl(socket.socket(), 0x8914, interface)  # SIOCSIFFLAGS"
    "$python" "$@" && code=0 || code=$?
    exit "$code"
' tests .venv/bin/python -m pytest -p no:cacheprovider --no-skips -n 2 --dist loadfile "${wanted[@]}"
