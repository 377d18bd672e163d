/** The Helm chart in `deploy/helm/signalbox`: what it renders fits together, and fits the service. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { SERVE_OPTIONS } from "../../packages/signalbox/src/cli/options.ts";
import { checkConfigFile } from "../../packages/signalbox/src/config/read-config-file.ts";
import { createHealth } from "../../packages/signalbox/src/http/index.ts";
import { VERSION } from "../../packages/signalbox/src/version.ts";
import { parseDockerfile } from "../support/dockerfile.ts";
import { CHART, type KubernetesObject, readYaml, renderFiles, renderObjects } from "../support/helm-chart.ts";

const CLUSTER = {
  replicas: 3,
  existingSecret: "signalbox",
  database: { existingSecret: "signalbox-db", key: "uri" },
};
const EVERYTHING = {
  ...CLUSTER,
  processes: "auto",
  image: { repository: "registry.example.com/signalbox", tag: "1.2.3" },
  imagePullSecrets: [{ name: "pull" }],
  env: [{ name: "OPENAI_API_KEY", valueFrom: { secretKeyRef: { name: "keys", key: "openai" } } }],
  config: { listener: { trustedProxies: ["10.0.0.0/8"] }, dashboard: { allowedHosts: ["ai.example.com"] } },
  appVolume: { configMap: { name: "agents" } },
  extraVolumes: [{ name: "private-ca", configMap: { name: "private-ca" } }],
  extraVolumeMounts: [{ name: "private-ca", mountPath: "/etc/private-ca", readOnly: true }],
  networkPolicy: { enabled: true, from: [{ namespaceSelector: { matchLabels: { name: "apps" } } }] },
  tls: { existingSecret: "own-tls" },
  persistence: { storageClass: "fast" },
  service: { annotations: { a: "b" } },
  ingress: { enabled: true },
  serviceMonitor: { enabled: true, tokenSecret: { name: "metrics" }, labels: { release: "prometheus" } },
  serviceAccount: { annotations: { role: "arn:x" } },
  podAnnotations: { x: "y" },
  podLabels: { team: "ai" },
  nodeSelector: { disk: "ssd" },
  tolerations: [{ operator: "Exists" }],
  affinity: { podAntiAffinity: {} },
  topologySpreadConstraints: [{ maxSkew: 1 }],
};
const CASES: readonly [string, Record<string, unknown>, string[]][] = [
  ["the defaults", {}, ["ConfigMap", "Service", "Service", "ServiceAccount", "StatefulSet"]],
  [
    "without a volume and an account",
    { persistence: { enabled: false }, serviceAccount: { create: false } },
    ["ConfigMap", "Service", "Service", "StatefulSet"],
  ],
  [
    "a cluster",
    CLUSTER,
    ["ConfigMap", "PodDisruptionBudget", "Service", "Service", "ServiceAccount", "StatefulSet"],
  ],
  [
    "everything",
    EVERYTHING,
    "ConfigMap Ingress NetworkPolicy PodDisruptionBudget Service Service ServiceAccount ServiceMonitor StatefulSet".split(
      " ",
    ),
  ],
];

const of = (objects: KubernetesObject[], kind: string) => objects.filter((object) => object.kind === kind);
const podOf = (objects: KubernetesObject[]) => of(objects, "StatefulSet")[0].spec.template;
const containerOf = (objects: KubernetesObject[]) => podOf(objects).spec.containers[0];
const names = (list: KubernetesObject[]) => list.map(({ name }) => name as string);

describe.each(CASES)("with %s", (_, values, kinds) => {
  const objects = renderObjects(values);
  const set = of(objects, "StatefulSet")[0];
  const pod = podOf(objects);
  const container = containerOf(objects);

  it("the objects have kinds, names and labels", () => {
    expect(objects.map(({ kind }) => kind as string).toSorted()).toEqual(kinds);
    const ids = objects.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { apiVersion, metadata } of objects) {
      expect(apiVersion).toMatch(/^([\w.]+\/)?v1$/);
      expect(metadata.name).toMatch(/^[a-z][a-z0-9-]{0,62}$/);
      expect(metadata.labels).toMatchObject({ "app.kubernetes.io/instance": "box" });
    }
  });

  it("selectors match the pods, and names refer to objects that exist", () => {
    const selectors = [
      set.spec.selector.matchLabels,
      ...of(objects, "Service").map(({ spec }) => spec.selector),
      ...of(objects, "PodDisruptionBudget").map(({ spec }) => spec.selector.matchLabels),
      ...of(objects, "NetworkPolicy").flatMap(({ spec }) => [
        spec.podSelector.matchLabels,
        spec.ingress[1].from[0].podSelector.matchLabels,
      ]),
    ];
    for (const selector of selectors) expect(pod.metadata.labels).toMatchObject(selector);
    for (const { spec } of of(objects, "ServiceMonitor")) {
      const services = of(objects, "Service").filter(({ metadata }) =>
        Object.entries(spec.selector.matchLabels).every(([key, value]) => metadata.labels[key] === value),
      );
      const ports = services.flatMap(({ spec: service }) => names(service.ports));
      expect(ports).toContain(spec.endpoints[0].port);
    }
    const headless = of(objects, "Service").find(({ metadata }) => metadata.name === set.spec.serviceName);
    expect(headless.spec.clusterIP).toBe("None");
    for (const { spec } of of(objects, "Service"))
      for (const { targetPort } of spec.ports) expect(names(container.ports)).toContain(targetPort);
    for (const { spec } of of(objects, "Ingress")) {
      const { service } = spec.rules[0].http.paths[0].backend;
      const found = of(objects, "Service").find(({ metadata }) => metadata.name === service.name);
      expect(names(found.spec.ports)).toContain(service.port.name);
    }
    for (const { spec } of of(objects, "NetworkPolicy"))
      for (const { ports } of spec.ingress) expect(names(container.ports)).toContain(ports[0].port);
    const accounts = of(objects, "ServiceAccount").map(({ metadata }) => metadata.name as string);
    expect([...accounts, "default"]).toContain(pod.spec.serviceAccountName);
  });

  it("every mount has a volume, and every volume a mount", () => {
    const claims: string[] = (set.spec.volumeClaimTemplates ?? []).map(
      ({ metadata }: KubernetesObject) => metadata.name as string,
    );
    expect([...names(pod.spec.volumes), ...claims].toSorted()).toEqual(
      names(container.volumeMounts).toSorted(),
    );
    const map = pod.spec.volumes.find(({ name }: KubernetesObject) => name === "config").configMap.name;
    const config = of(objects, "ConfigMap").find(({ metadata }) => metadata.name === map);
    const file = Object.keys(config.data)[0] ?? "";
    expect(container.args).toContain(`/etc/signalbox/${file}`);
    checkConfigFile(JSON.parse(config.data[file]), file);
  });

  it("the command line, the variables and the paths of the probes exist in the service", () => {
    const [command, ...options] = container.args as string[];
    expect(command).toBe("serve");
    for (const option of options.filter((text) => text.startsWith("--")))
      expect(SERVE_OPTIONS.map(({ name }) => `--${name}`)).toContain(option);
    const known = configuredVariables();
    const own = names(container.env).filter((name) => name !== "OPENAI_API_KEY");
    for (const name of own) expect([name, known.has(name)]).toEqual([name, true]);
    const paths = createHealth(() => [], null).segments.map((segment) => `/${segment}`);
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
      const { path, port, scheme } = container[probe].httpGet;
      expect(paths).toContain(path);
      expect(names(container.ports)).toContain(port);
      expect(scheme).toBe(own.includes("SIGNALBOX_TLS_CERT") ? "HTTPS" : "HTTP");
    }
  });

  it("the container has no rights, and the user of the image", () => {
    expect(pod.spec.securityContext).toMatchObject({ runAsNonRoot: true });
    const [user, group] = (parseDockerfile().at(-1)?.user ?? "").split(":").map(Number);
    expect(pod.spec.securityContext).toMatchObject({ runAsUser: user, runAsGroup: group });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    // Longer than the default of lameDuckMs, of moving instances and of gracePeriodMs together.
    expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThan(5 + 10 + 10);
  });
});

/** The variables that the configuration reads. */
function configuredVariables(): Set<string> {
  const folder = join(import.meta.dirname, "../../packages/signalbox/src/config");
  const text = globSync("*.ts", { cwd: folder })
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("\n");
  return new Set([...text.matchAll(/environment\[?"([A-Z_]+)"\]/g)].map(([, name]) => name ?? ""));
}

it("several nodes without PostgreSQL, without shared secrets, and metrics without a token are refused by name", () => {
  expect(() => renderObjects({ replicas: 2 })).toThrow(
    /replicas above 1 need PostgreSQL: set database.existingSecret/,
  );
  expect(() => renderObjects({ replicas: 2, database: { existingSecret: "db" } })).toThrow(
    /set existingSecret/,
  );
  for (const processes of ["auto", 4])
    expect(() => renderObjects({ processes })).toThrow(
      /processes above 1 need PostgreSQL: set database.existingSecret/,
    );
  expect(() => renderObjects({ serviceMonitor: { enabled: true } })).toThrow(
    /serviceMonitor.tokenSecret.name/,
  );
});

it("every value is used by a template, and every used value exists", () => {
  const templates = globSync("templates/*", { cwd: CHART }).map((file) =>
    readFileSync(join(CHART, file), "utf8"),
  );
  const used = new Set(
    templates
      .join("\n")
      .matchAll(/\.Values\.([\w.]+)/g)
      .map(([, path]) => path ?? ""),
  );
  const leaves = (value: unknown, path: string): string[] =>
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    Object.keys(value).length > 0 &&
    !used.has(path)
      ? Object.entries(value).flatMap(([key, inner]) => leaves(inner, path === "" ? key : `${path}.${key}`))
      : [path];
  expect([...used].toSorted()).toEqual(leaves(readYaml("values.yaml"), "").toSorted());
});

describe("values.schema.json", () => {
  const schema = JSON.parse(readFileSync(join(CHART, "values.schema.json"), "utf8")) as Schema;
  const validate = new Ajv({ allowUnionTypes: true }).compile(schema);

  it("has the values of values.yaml, and takes the defaults and all others that the tests render", () => {
    const { global: _, ...own } = schema.properties ?? {};
    expect(namesIn(readYaml("values.yaml"), { properties: own })).toEqual([]);
    for (const [, values] of CASES) {
      validate(values);
      expect(validate.errors ?? []).toEqual([]);
    }
    expect(validate(readYaml("values.yaml"))).toBe(true);
  });

  it.each([
    ["an unknown value", { replica: 3 }],
    ["an unknown value below another", { persistence: { storageclass: "fast" } }],
    ["a text in place of a switch", { ingress: { enabled: "yes" } }],
    ["a number of processes that is no number", { processes: "all" }],
    ["a mount without a place", { extraVolumeMounts: [{ name: "private-ca" }] }],
  ])("refuses %s", (_, values) => expect(validate(values)).toBe(false));
});

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}

/** Names that only one of the two has. */
function namesIn(values: object, { properties }: Schema, path = ""): string[] {
  if (properties === undefined) return [];
  return [...new Set([...Object.keys(values), ...Object.keys(properties)])].flatMap((name) => {
    const value = (values as Record<string, unknown>)[name];
    const known = properties[name];
    if (value === undefined || known === undefined) return [`${path}${name}`];
    // What `resources` contains is Kubernetes' matter.
    if (name === "resources" || typeof value !== "object" || value === null || Array.isArray(value))
      return [];
    return namesIn(value, known, `${path}${name}.`);
  });
}

it("the chart has the version of the package, and its notes name objects that exist", () => {
  expect(readYaml("Chart.yaml")).toMatchObject({
    apiVersion: "v2",
    name: "signalbox",
    version: VERSION,
    appVersion: VERSION,
  });
  const notes = renderFiles({}).get("templates/NOTES.txt") ?? "";
  expect(notes).toContain("kubectl -n apps exec box-signalbox-0 -- cat /data/root-token");
  // A release whose name contains that of the chart is not doubled.
  expect(of(renderObjects({}, "signalbox-test"), "StatefulSet")[0].metadata.name).toBe("signalbox-test");
});
