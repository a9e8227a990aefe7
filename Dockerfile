# Cairn's HTTP server. docs/deploy.md describes how to run it and what was tested.
FROM node:24-bookworm-slim AS build
WORKDIR /app
# These two files come first: a change of the source does not invalidate the installed packages.
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
# Removes files that only builds, other platforms and debuggers need.
RUN npm run build \
 && npm prune --omit=dev --ignore-scripts --no-audit --no-fund \
 && rm -rf node_modules/onnxruntime-node/bin/napi-v3/darwin node_modules/onnxruntime-node/bin/napi-v3/win32 \
 && rm -rf dist/sqlite/prebuilds/darwin-* dist/sqlite/prebuilds/win32-* \
 && find node_modules dist '(' -name '*.map' -o -name '*.d.ts' -o -name '*.d.cts' -o -name '*.d.mts' ')' -delete

FROM node:24-bookworm-slim
ENV NODE_ENV=production \
    CAIRN_DATA_DIR=/data \
    CAIRN_STATE_DIR=/data/state \
    CAIRN_HTTP_HOST=0.0.0.0 \
    CAIRN_HTTP_PORT=7483
WORKDIR /app
COPY --from=build /app/package.json /app/LICENSE /app/NOTICE ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
RUN mkdir /data && chown node:node /data && ln -s /app/dist/bundle/main.cjs /usr/local/bin/cairn
USER node
VOLUME /data
EXPOSE 7483
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.CAIRN_HTTP_PORT}/health`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["cairn"]
CMD ["serve"]
