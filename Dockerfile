# The image of the gateway. Build it in this folder: docker build -t stream-metrics-route .

FROM node:20-bookworm-slim AS build
WORKDIR /build
# The dependencies first: they change less often than the code, so this layer is mostly taken from the cache.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY proto proto
COPY cmd cmd
COPY src src
RUN npm run build && npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:20-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /build/node_modules node_modules
COPY --from=build /build/dist dist
COPY package.json LICENSE ./
COPY config config

# The default of spool.path, so that the image starts without a volume; what it holds then goes with the container. All else
# belongs to root, and the gateway writes nowhere else.
RUN install -d -m 700 -o 65532 -g 65532 data/spool

# By number, since Kubernetes cannot tell whether a name is root (runAsNonRoot).
USER 65532:65532
EXPOSE 8080

# No HEALTHCHECK: it would start another Node process every time, and Kubernetes, which ignores it, asks /-/healthy itself.
# A small heap that buffers pass through quickly: helper threads cost more than they collect.
# Exec form: the gateway is process 1 and gets SIGTERM, on which it drains.
ENTRYPOINT ["node", "--single-threaded-gc", "dist/cmd/main.js"]
CMD ["serve", "--config", "/etc/stream-metrics-route/config.yaml"]
