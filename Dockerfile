# One image for every process; the command chooses which.
FROM node:22-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY packages packages
COPY apps apps
COPY scripts/lib/bundle.mjs scripts/lib/
COPY turbo.json tsconfig.json tsconfig.base.json ./
RUN npm ci --ignore-scripts && node packages/store/lua/generate.mjs && npx tsc -b && for app in cli scheduler console; do node apps/$app/bundle.mjs || exit 1; done && npx vite build --config apps/console/ui/vite.config.ts && npm prune --omit=dev --ignore-scripts

FROM node:22-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app /app
USER node
CMD ["node", "apps/scheduler/bin/carillon-scheduler.js"]
