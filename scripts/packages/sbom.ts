/**
 * The bill of materials of a published package, in CycloneDX 1.6: every package that an installation from package-lock.json has, with hash and
 * licence, and what the dashboard in the package is made of.
 *
 * Not `npm sbom`: in a workspace it describes the workspace, and leaves out dependencies that are also development dependencies of the root.
 */
import { createHash } from "node:crypto";
import { locate, type LockFile, nameOfPath } from "./lock-file.ts";
import { type Manifest, packageFolder, PUBLISHED, readManifest } from "./published.ts";

interface Component {
  readonly type: "library" | "application";
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly scope?: "required" | "optional";
  readonly purl: string;
  readonly licenses?: readonly [{ readonly expression: string }];
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

/** Tools that build the dashboard; the rest of its dependencies is in its files. */
const BUILD_TOOLS: ReadonlySet<string> = new Set(["vite"]);

export function createSbom(folder: string, manifest: Manifest, lock: LockFile): object {
  const components = new Map<string, Component>();
  const edges = new Map<string, Set<string>>();
  const own = new Map(PUBLISHED.map((name) => [`packages/${name}`, readManifest(packageFolder(name)).name]));

  /** Adds what the package at `path` depends on, and returns the references of its direct dependencies. */
  function visit(path: string, names: Readonly<Record<string, string>>, isOptional: boolean): string[] {
    return Object.keys(names).flatMap((name) => {
      const found = locate(lock, name, path);
      if (found === undefined) return [];
      const ownName = own.get(found.path);
      const component = toComponent(
        ownName ?? nameOfPath(found.path),
        ownName === undefined ? (found.entry.version ?? "") : manifest.version,
        isOptional,
        found.entry,
      );
      const ref = component["bom-ref"];
      const known = components.get(ref);
      if (known === undefined || (known.scope === "optional" && !isOptional)) {
        components.set(ref, component);
        const { dependencies = {}, optionalDependencies = {} } = found.entry;
        edges.set(
          ref,
          new Set([
            ...visit(found.path, dependencies, isOptional),
            ...visit(found.path, optionalDependencies, true),
          ]),
        );
      }
      return [ref];
    });
  }

  const root = toComponent(manifest.name, manifest.version, false, { license: "Apache-2.0" });
  const direct = visit(`packages/${folder}`, manifest.dependencies ?? {}, false);
  if (folder === "signalbox") direct.push(...visit("packages/dashboard", dashboardParts(), false));
  edges.set(root["bom-ref"], new Set(direct));
  const { scope: _, ...subject } = root;
  const body = {
    metadata: { component: { ...subject, type: manifest["bin"] === undefined ? "library" : "application" } },
    components: [...components.values()].sort(byReference),
    dependencies: [...edges]
      .map(([ref, refs]) => ({ ref, dependsOn: [...refs].sort() }))
      .sort((a, b) => (a.ref < b.ref ? -1 : 1)),
  };
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: serialNumber(body),
    version: 1,
    ...body,
  };
}

function dashboardParts(): Record<string, string> {
  const { dependencies = {} } = readManifest(packageFolder("dashboard"));
  return Object.fromEntries(Object.entries(dependencies).filter(([name]) => !BUILD_TOOLS.has(name)));
}

function toComponent(
  name: string,
  version: string,
  isOptional: boolean,
  { integrity, license }: { integrity?: string; license?: string },
): Component {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const hash = /^sha512-(.+)$/.exec(integrity ?? "")?.[1];
  return {
    type: "library",
    "bom-ref": purl,
    name,
    version,
    scope: isOptional ? "optional" : "required",
    purl,
    ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
    ...(hash === undefined
      ? {}
      : { hashes: [{ alg: "SHA-512", content: Buffer.from(hash, "base64").toString("hex") }] }),
  };
}

/** The same content has the same number, so that a build can be repeated. */
function serialNumber(body: object): string {
  const hex = createHash("sha256").update(JSON.stringify(body)).digest("hex");
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, variant + hex.slice(17, 20)];
  return `urn:uuid:${[...parts, hex.slice(20, 32)].join("-")}`;
}

function byReference(a: Component, b: Component): number {
  return a["bom-ref"] < b["bom-ref"] ? -1 : 1;
}
