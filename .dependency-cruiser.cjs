// The import table of docs/architecture.md as rules. `scripts/check.ts` fails when no module was read.
const SRC = "^packages/signalbox/src";
const area = (name) => `${SRC}/${name}/`;
const AREAS = ["audit", "gateway", "agents", "webhooks", "tags", "worker", "alerts"];
const ENGINES = [
  "http-server",
  "relay",
  "call-log",
  "instance-store",
  "turn-runtime",
  "tag-index",
  "node-link",
  "program-process",
  "otlp-export",
  "loop-watch",
  "archive",
  "text-scan",
  "sqlite-file",
  "durable-file",
  "ip-address",
  "postgres-session",
];
/**
 * Small engines that the others stand on: an SQLite file with its statements, files that are written whole, sessions with PostgreSQL, and what an
 * address may be.
 */
const FOUNDATIONS = ["sqlite-file", "durable-file", "ip-address", "postgres-session"];
const FOUNDATION_APIS = `${SRC}/engines/(${FOUNDATIONS.join("|")})/index\\.ts$`;
const TESTS = "(\\.test|-contract|-model|-fixture)\\.ts$|/contract/";
/** What of http an area may use: types of routes and requests, no machinery. */
const HTTP_TYPES = `${SRC}/http/(area|route|request-context|request-target|render-error|foreign-answer)\\.ts$`;

const islands = AREAS.map((name) => ({
  name: `${name}-is-an-island`,
  comment: "Areas do not know each other; webhooks and the worker may use the api of the agents.",
  severity: "error",
  from: { path: area(name), pathNot: "\\.test\\.ts$" },
  to: {
    path: `${SRC}/(${AREAS.filter((other) => other !== name).join("|")})/`,
    ...(name === "webhooks" || name === "worker" ? { pathNot: `${SRC}/agents/(index|calls)\\.ts$` } : {}),
  },
}));

/** The layers of the agents' area. */
const AGENT_LAYERS = [
  "work",
  "api",
  "connections",
  "instance",
  "placement",
  "objects",
  "(doors|management|modules|remote)",
];

/** The layers of the gateway, from the vocabulary to the entrances. */
const GATEWAY_LAYERS = [
  "providers",
  "(settings|cache)",
  "step",
  "guardrails",
  "(models|exchange|reliability)",
  "limits",
  "keys",
  "plan",
  "call",
  "jobs",
  "routes",
  "door",
  "realtime",
  "trace",
];

/** Each layer imports itself and those before it. */
function layersOf(name, layers) {
  return layers.slice(0, -1).map((layer, i) => ({
    name: `${name}-${layer}-imports-lower-layers`,
    severity: "error",
    from: { path: area(`${name}/${layer}`), pathNot: TESTS },
    to: { path: area(`${name}/(${layers.slice(i + 1).join("|")})`) },
  }));
}

module.exports = {
  forbidden: [
    {
      name: "no-cycles",
      comment: "Type-only imports count: two files that need each other's types are one idea.",
      severity: "error",
      from: { pathNot: "\\.test\\.ts$" },
      to: { circular: true },
    },
    ...islands,
    ...layersOf("agents", AGENT_LAYERS),
    ...layersOf("gateway", GATEWAY_LAYERS),
    {
      name: "core-stands-alone",
      severity: "error",
      from: { path: area("core") },
      to: { path: SRC, pathNot: area("core") },
    },
    {
      name: "contracts-know-core-and-links",
      severity: "error",
      from: { path: area("contracts") },
      // The links between nodes are what areas of different nodes say to each other.
      to: { path: SRC, pathNot: [area("core"), area("contracts"), `${SRC}/engines/node-link/index\\.ts$`] },
    },
    ...ENGINES.map((name) => ({
      name: `engine-${name}-stands-alone`,
      comment:
        "An engine knows core, itself and the apis of the foundations; it could be a package of its own.",
      severity: "error",
      from: { path: area(`engines/${name}`), pathNot: TESTS },
      to: {
        path: SRC,
        pathNot: [
          area("core"),
          area(`engines/${name}`),
          ...(FOUNDATIONS.includes(name) ? [] : [FOUNDATION_APIS]),
        ],
      },
    })),
    {
      name: "engines-have-one-api",
      comment: "Everything outside an engine imports its index.ts.",
      severity: "error",
      from: { path: `${SRC}/(?!engines/)`, pathNot: TESTS },
      to: { path: `${SRC}/engines/`, pathNot: `${SRC}/engines/[^/]+/index\\.ts$` },
    },
    {
      name: "database-adapters-know-their-interface",
      severity: "error",
      from: { path: `${SRC}/database/`, pathNot: TESTS },
      to: { path: SRC, pathNot: [area("core"), area("database"), FOUNDATION_APIS] },
    },
    {
      name: "cluster-knows-links-and-the-database-interface",
      comment: "Membership, messages and versions; what the messages mean is told to it by the areas.",
      severity: "error",
      from: { path: area("cluster"), pathNot: TESTS },
      to: {
        path: SRC,
        pathNot: [
          area("core"),
          area("contracts"),
          area("cluster"),
          `${SRC}/engines/node-link/index\\.ts$`,
          `${SRC}/database/(database|membership|shared-settings)\\.ts$`,
        ],
      },
    },
    {
      name: "database-adapters-do-not-mix",
      severity: "error",
      from: { path: `${SRC}/database/sqlite/` },
      to: { path: `${SRC}/database/postgres/` },
    },
    {
      name: "areas-use-the-database-interface",
      comment: "The composition root picks the adapter.",
      severity: "error",
      from: { path: `${SRC}/(${AREAS.join("|")}|accounts|accounts-api|http)/`, pathNot: TESTS },
      to: { path: `${SRC}/database/(sqlite|postgres)/` },
    },
    {
      name: "sockets-threads-and-sqlite-in-engines-only",
      severity: "error",
      from: { path: `${SRC}/(?!engines/|database/)`, pathNot: TESTS },
      to: { path: "^(node:)?(net|worker_threads|sqlite)$" },
    },
    {
      name: "areas-use-route-types-of-http",
      severity: "error",
      from: {
        path: `${SRC}/(${AREAS.join("|")}|accounts|accounts-api|dashboard)/`,
        pathNot: "\\.test\\.ts$",
      },
      to: { path: area("http"), pathNot: HTTP_TYPES },
    },
    {
      name: "nobody-imports-the-root",
      comment:
        "service.ts and the command line build everything; only the harness for users' tests builds on service.ts.",
      severity: "error",
      from: {
        path: SRC,
        pathNot: [`${SRC}/(service|index)\\.ts$`, area("cli"), area("testing"), "\\.test\\.ts$"],
      },
      to: { path: `${SRC}/(service\\.ts|cli/)` },
    },
    {
      name: "protocol-stands-alone",
      severity: "error",
      from: { path: "^packages/protocol/src" },
      to: { path: "^packages/(?!protocol)|node_modules", dependencyTypesNot: ["core"] },
    },
    {
      name: "translate-stands-alone",
      comment: "Pure functions, usable without the service.",
      severity: "error",
      from: { path: "^packages/translate/src", pathNot: "\\.test\\.ts$" },
      to: { path: "^packages/(?!translate)|node_modules|^node:" },
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
      comment:
        "The service does not call its own management interface; the harness for users' tests does, as their programs do.",
      severity: "error",
      from: { path: SRC, pathNot: [area("cli"), area("testing"), "\\.test\\.ts$"] },
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
    {
      name: "create-signalbox-stands-alone",
      comment: "`npm create` installs it for one run, on any Node from 20 on.",
      severity: "error",
      from: { path: "^packages/create-signalbox/src" },
      to: { path: "^packages/(?!create-signalbox)|node_modules" },
    },
    { name: "no-unresolved", severity: "error", from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    parser: "swc",
    tsPreCompilationDeps: true,
    // Programs of the worker mode are resolved by its own loader; the template is a project of its own; scripts/originals runs inside of checkouts.
    exclude: {
      path: "(^|/)(dist|node_modules)/|^test/worker/programs/|^scripts/originals/|^packages/create-signalbox/template/",
    },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default"],
      extensions: [".ts", ".js"],
    },
  },
};
