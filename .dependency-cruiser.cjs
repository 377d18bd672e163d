// The import table of docs/architecture.md as rules. `scripts/check.ts` fails when no module was read.
const SRC = "^packages/signalbox/src";
const area = (name) => `${SRC}/${name}/`;
const AREAS = ["gateway", "agents", "webhooks", "tags"];
/** What of http an area may use: types of routes and requests, no machinery. */
const HTTP_TYPES = `${SRC}/http/(area|route|request-context|render-error|foreign-answer)\\.ts$`;

const islands = AREAS.map((name) => ({
  name: `${name}-is-an-island`,
  comment: "Areas do not know each other; webhooks may use the agents' door.",
  severity: "error",
  from: { path: area(name), pathNot: "\\.test\\.ts$" },
  to: {
    path: `${SRC}/(${AREAS.filter((other) => other !== name).join("|")})/`,
    ...(name === "webhooks" ? { pathNot: `${SRC}/agents/index\\.ts$` } : {}),
  },
}));

module.exports = {
  forbidden: [
    {
      name: "no-cycles",
      severity: "error",
      from: { pathNot: "\\.test\\.ts$" },
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    ...islands,
    {
      name: "core-stands-alone",
      severity: "error",
      from: { path: area("core") },
      to: { path: SRC, pathNot: area("core") },
    },
    {
      name: "ports-know-no-adapter",
      severity: "error",
      from: { path: `${SRC}/storage/ports/` },
      to: { path: SRC, pathNot: [area("core"), `${SRC}/storage/ports/`] },
    },
    {
      name: "adapters-know-ports-only",
      severity: "error",
      from: { path: `${SRC}/storage/(sqlite|postgres)/`, pathNot: "\\.test\\.ts$" },
      to: { path: SRC, pathNot: [area("core"), `${SRC}/storage/`] },
    },
    {
      name: "adapters-do-not-mix",
      severity: "error",
      from: { path: `${SRC}/storage/sqlite/` },
      to: { path: `${SRC}/storage/postgres/` },
    },
    {
      name: "areas-use-ports",
      comment: "An area reaches storage through ports; the composition root picks the adapter.",
      severity: "error",
      from: { path: `${SRC}/(${AREAS.join("|")}|accounts|http)/`, pathNot: "\\.test\\.ts$" },
      to: { path: `${SRC}/storage/(sqlite|postgres)/` },
    },
    {
      name: "areas-use-route-types-of-http",
      severity: "error",
      from: { path: `${SRC}/(${AREAS.join("|")}|accounts|dashboard)/`, pathNot: "\\.test\\.ts$" },
      to: { path: area("http"), pathNot: HTTP_TYPES },
    },
    {
      name: "nobody-imports-the-root",
      comment: "service.ts and the command line build everything; nothing builds on them.",
      severity: "error",
      from: { path: SRC, pathNot: [`${SRC}/(service|index)\\.ts$`, area("cli"), "\\.test\\.ts$"] },
      to: { path: `${SRC}/(service\\.ts|cli/)` },
    },
    {
      name: "protocol-stands-alone",
      severity: "error",
      from: { path: "^packages/protocol/src" },
      to: { path: "^packages/(?!protocol)|node_modules", dependencyTypesNot: ["core"] },
    },
    {
      name: "client-knows-protocol-only",
      comment: "A browser app that wants the hook must not load a server.",
      severity: "error",
      from: { path: "^packages/client/src", pathNot: "\\.test\\.ts$" },
      to: {
        path: "^packages/(?!client/src|protocol)|node_modules",
        pathNot: "node_modules/(@types/)?react/",
      },
    },
    {
      name: "only-the-command-line-is-a-client",
      comment: "The service does not call its own management interface.",
      severity: "error",
      from: { path: SRC, pathNot: [area("cli"), "\\.test\\.ts$"] },
      to: { path: "^packages/client/" },
    },
    {
      name: "only-the-hook-knows-react",
      comment: "react is an optional peer: without it the rest must work.",
      severity: "error",
      from: { path: "^packages/client/src/(?!react/)", pathNot: "\\.test\\.ts$" },
      to: { path: "node_modules/(@types/)?react|^packages/client/src/react/" },
    },
    {
      name: "dashboard-is-a-client",
      comment: "The page knows the service as any client does.",
      severity: "error",
      from: { path: "^packages/dashboard/src" },
      to: { path: "^packages/(?!dashboard|client|protocol)" },
    },
    { name: "no-unresolved", severity: "error", from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    parser: "swc",
    tsPreCompilationDeps: true,
    exclude: { path: "(^|/)(dist|node_modules)/" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default"],
      extensions: [".ts", ".js"],
    },
  },
};
