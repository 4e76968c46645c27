# Two images of opencode-mcp (docs/container.md):
#
#   docker build --target runtime -t opencode-mcp:runtime .    attaches to an OpenCode that runs elsewhere
#   docker build --target bundled -t opencode-mcp:bundled .    brings the pinned OpenCode, git and ripgrep
#
# The bases are parameters: any Debian with Python 3.11 or newer and its venv module, and the same
# with npm. Pin them by digest where you build for others.
ARG BASE_IMAGE=python:3.12.12-slim-bookworm
ARG NODE_IMAGE=node:22.21.1-bookworm-slim

# ---- what builds: none of it is in the images
FROM ${BASE_IMAGE} AS tools
WORKDIR /src
COPY container/build-tools.txt ./
RUN python3 -m venv /tools \
    && /tools/bin/pip install --no-cache-dir --no-deps --require-hashes -r build-tools.txt

FROM tools AS wheel
COPY pyproject.toml README.md LICENSE ./
COPY migrations migrations
COPY opencode_mcp opencode_mcp
RUN /tools/bin/uv build --wheel --no-build-isolation --offline --python /tools/bin/python --out-dir /dist

FROM tools AS environment
ENV UV_PROJECT_ENVIRONMENT=/opt/opencode-mcp UV_PYTHON_DOWNLOADS=never UV_NO_CACHE=1 UV_LINK_MODE=copy
COPY pyproject.toml uv.lock ./
RUN /tools/bin/uv sync --frozen --no-default-groups --no-install-project --python "$(command -v python3)"
COPY --from=wheel /dist /dist
# Compiled here, since no user of the image can write beside the sources. Unchecked: the times of
# files do not survive every way an image travels.
RUN /tools/bin/uv pip install --python /opt/opencode-mcp --no-deps --no-index /dist/*.whl \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/opencode-mcp/lib
COPY --chmod=755 container/healthcheck.py /opt/opencode-mcp/bin/

FROM ${NODE_IMAGE} AS opencode
WORKDIR /opencode
COPY tools/opencode/package.json tools/opencode/package-lock.json tools/opencode/.npmrc ./
# One program without Node.js. On x64 the one that runs on every processor, not the one that fits
# the machine which builds.
RUN npm ci --ignore-scripts --no-audit --no-fund --loglevel=error \
    && for package in opencode-linux-x64-baseline opencode-linux-arm64; do \
         if [ -e "node_modules/$package" ]; then install -D "node_modules/$package/bin/opencode" /out/opencode; fi; \
       done \
    && /out/opencode --version

# ---- what both images share
FROM ${BASE_IMAGE} AS base
# Neither what installs packages nor what changes the user is of use here. Debian's packages are not
# pinned: its archive holds only the newest of a release, and that is the one with the fixes.
# The base may come without compiled modules, which nobody could write later.
# /data may be written by any user, so that `--user` works; files in it are made for their owner only.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini \
    && apt-get purge --yes --auto-remove '~i~n"^python3.*-(pip|setuptools|wheel|venv|whl)$"' \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
       /usr/local/bin/pip* /usr/local/lib/python3*/site-packages/* /usr/local/lib/python3*/ensurepip \
    && python3 -m compileall -q -j 0 -x '/(idlelib|lib2to3|test|tests|tkinter|turtledemo)/' \
       "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" \
    && find / -xdev -type f -perm /6000 -exec chmod a-s {} + \
    && groupadd --gid 65532 opencode \
    && useradd --uid 65532 --gid 65532 --home-dir /data --no-create-home --shell /bin/bash opencode \
    && install --directory --mode 0777 --owner 65532 --group 65532 /data /data/.config /data/.config/opencode \
       /data/.cache /data/.local /data/.local/share /data/.local/share/opencode /data/.local/state
COPY --from=environment /opt/opencode-mcp /opt/opencode-mcp
ENV PATH=/opt/opencode-mcp/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/data \
    XDG_CONFIG_HOME=/data/.config \
    XDG_CACHE_HOME=/data/.cache \
    XDG_DATA_HOME=/data/.local/share \
    XDG_STATE_HOME=/data/.local/state \
    OPENCODE_MCP_DATABASE=/data/opencode-mcp.db \
    OPENCODE_MCP_HOST=0.0.0.0
VOLUME /data
EXPOSE 8000
ENTRYPOINT ["tini", "--", "opencode-mcp"]
CMD []
# Right for both transports: over stdio it looks for the process, over HTTP it asks /healthz.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["/opt/opencode-mcp/bin/python", "-I", "-S", "/opt/opencode-mcp/bin/healthcheck.py"]
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="opencode-mcp" \
      org.opencontainers.image.description="An MCP server that delegates coding tasks to OpenCode, tracks them, and really ends them." \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

# ---- attaches to an OpenCode that runs elsewhere: folders are that one's
FROM base AS runtime
ENV OPENCODE_MCP_MODE=attach OPENCODE_MCP_REMOTE_PATHS=true
WORKDIR /data
USER 65532:65532

# ---- brings an OpenCode
FROM base AS bundled
# A mounted project mostly belongs to another user than the one in here, and git would refuse it.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git ripgrep \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* \
    && git config --system --add safe.directory '*' \
    && install --directory --mode 0777 --owner 65532 --group 65532 /workspace
COPY --from=opencode /out/opencode /usr/local/bin/opencode
COPY --chmod=755 container/opencode-serve container/opencode-healthcheck /usr/local/bin/
ENV SHELL=/bin/bash
WORKDIR /workspace
USER 65532:65532
