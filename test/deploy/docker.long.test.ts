/** The Dockerfile and the compose files in `deploy/docker`. The image is built by carrying out the instructions; see container-image.ts. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { globSync, lstatSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { findHaproxy, HAPROXY_IS_MISSING } from "../../examples/cluster/haproxy.ts";
import { VERSION } from "../../packages/signalbox/src/version.ts";
import { buildImage, type Image, inImage, isIgnored } from "../support/container-image.ts";
import { parseDockerfile } from "../support/dockerfile.ts";
import { waitUntil } from "../support/wait-until.ts";

const DOCKER = join(import.meta.dirname, "../../deploy/docker");

describe("the image", () => {
  let folder: string;
  let image: Image;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "signalbox-image-"));
    image = await buildImage(folder);
    const app = join(image.root, image.stage.folder);
    writeFileSync(
      join(app, "signalbox.config.ts"),
      'import { defineConfig } from "signalbox";\nexport default defineConfig({ agents: { modules: ["./agents.ts"] } });\n',
    );
    writeFileSync(
      join(app, "agents.ts"),
      'import { Agent } from "signalbox";\nexport class Hello extends Agent { override onRequest() { return new Response("hello from the image"); } }\n',
    );
    // The packages are built if no other test has built them.
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("serves as its user with configuration and agents of the folder, answers its health check, writes to its volume only, and ends with 0 on SIGTERM", async () => {
    const { stage, root } = image;
    const data = join(root, stage.volumes[0] ?? "");
    expect(statSync(data)).toMatchObject({ uid: 1000, gid: 1000, mode: 0o40700 });
    const environment = { PATH: "/usr/local/bin:/usr/bin:/bin", ...stage.environment, PORT: "0" };
    const health = () =>
      spawnSync(...inImage(image, stage.healthcheck), { env: environment, encoding: "utf8" });
    expect(health()).toMatchObject({ status: 1, stderr: expect.stringMatching(/^not healthy: ENOENT/) });

    const [program, args] = inImage(image, [...stage.entrypoint, ...stage.command, "--json"]);
    const child = spawn(program, args, { env: environment, stdio: ["ignore", "pipe", "pipe"] });
    const exit = once(child, "exit");
    // A second try starts on the same volume.
    onTestFinished(async () => {
      if (child.kill("SIGTERM")) await exit;
    });
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
    const first = await Promise.race([once(child.stdout.setEncoding("utf8"), "data"), exit]);
    expect(first[0], log).toContain('"url"');
    const { url, pid } = JSON.parse(String(first[0])) as { url: string; pid: number };
    // No shell in between: signals reach the server.
    expect(pid).toBe(child.pid);
    expect(readFileSync(`/proc/${pid}/status`, "utf8")).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m);
    // The check gives up after 4 s, which a paused machine may take.
    expect(await waitUntil(health, ({ status }) => status === 0)).toMatchObject({ stderr: "" });
    expect(await (await fetch(`${url}/dashboard/`)).text()).toContain("<title>Signalbox</title>");
    const token = readFileSync(join(data, "root-token"), "utf8").trim();
    const answer = await fetch(`${url}/agents/hello/one`, { headers: { authorization: `Bearer ${token}` } });
    expect([answer.status, await answer.text()]).toEqual([200, "hello from the image"]);
    const [command, words] = inImage(image, ["/usr/local/bin/signalbox", "account", "list"]);
    expect(execFileSync(command, words, { env: environment, encoding: "utf8" })).toContain("default");
    const written = globSync("**/*", { cwd: root, exclude: ["data/**"] }).filter(
      (path) => lstatSync(join(root, path)).uid === 1000,
    );
    expect(written).toEqual(["data"]);

    child.kill("SIGTERM");
    expect((await exit)[0], log).toBe(0);
    await waitUntil(health, ({ status }) => status === 1);
  });

  it("contains what runs, and neither sources, tests nor tools", () => {
    const modules = join(image.root, "opt/signalbox/node_modules");
    const files = globSync("{signalbox,@signalbox/*}/**/*.{ts,tsx}", { cwd: modules }).filter(
      (path) => !path.endsWith(".d.ts"),
    );
    expect(files).toEqual([]);
    expect(globSync("{typescript,vite,vitest,node,oxlint,.bin}", { cwd: modules })).toEqual([]);
    expect(globSync("*", { cwd: join(image.root, "opt/signalbox") }).toSorted()).toEqual([
      "app",
      "healthcheck.mjs",
      "node_modules",
    ]);
  });

  it("has a layer of the installation that depends on the manifests alone", () => {
    const left = globSync("**/*", { cwd: join(folder, "stage-0/src"), withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => name);
    expect([...new Set(left)].toSorted()).toEqual(["package-lock.json", "package.json"]);
    expect(globSync(".npmrc", { cwd: join(folder, "stage-0/src") })).toEqual([".npmrc"]);
    expect(left.length).toBeGreaterThan(10);
  });
});

describe("the Dockerfile", () => {
  it("ends in a stage with a user by number, a health check, a volume and a signal", () => {
    const stage = parseDockerfile().at(-1);
    expect(stage).toMatchObject({
      user: "1000:1000",
      volumes: ["/data"],
      ports: ["8787"],
      stopSignal: "SIGTERM",
    });
    expect(stage?.environment).toMatchObject({
      HOST: "0.0.0.0",
      PORT: "8787",
      SIGNALBOX_DATA_DIR: "/data",
      SIGNALBOX_PROCESSES: "auto",
    });
    expect(stage?.entrypoint[0]).toBe("/usr/local/bin/node");
  });

  it("installs packages from the manifests alone, before the sources are copied", () => {
    const stages = parseDockerfile();
    const build = stages.find(({ name }) => name === "build");
    const words = (build?.instructions ?? []).map(({ word, text }) => `${word} ${text}`);
    const at = (start: RegExp) => words.findIndex((line) => start.test(line));
    expect(at(/^COPY --from=manifests /)).toBeLessThan(at(/npm ci/));
    expect(at(/npm ci/)).toBeLessThan(at(/^COPY \. \.$/));
  });

  it("has labels with the version and the repository of the package", () => {
    const labels = parseDockerfile()
      .at(-1)
      ?.instructions.find(({ word }) => word === "LABEL")?.text;
    expect(labels).toContain(`org.opencontainers.image.version="${VERSION}"`);
    const { repository } = JSON.parse(
      readFileSync(join(DOCKER, "../../packages/signalbox/package.json"), "utf8"),
    ) as { repository: { url: string } };
    const source = repository.url.replace(/^git\+/, "").replace(/\.git$/, "");
    expect(labels).toContain(`org.opencontainers.image.source="${source}"`);
  });

  it("gets no secrets, data or results of a developer, and gets what the build reads", () => {
    for (const path of [
      ".env",
      "deploy/docker/signalbox.env",
      ".git",
      "node_modules",
      "packages/signalbox/dist",
      ".signalbox",
      "deploy/docker/cluster.env",
      "deploy/docker/.env",
    ])
      expect([path, isIgnored(path)]).toEqual([path, true]);
    for (const path of [
      "package.json",
      "package-lock.json",
      ".npmrc",
      "tsconfig.build.json",
      "scripts/build.ts",
      "packages/signalbox/src",
      "packages/dashboard/index.html",
      "deploy/docker/assemble.ts",
      "LICENSE",
    ])
      expect([path, isIgnored(path)]).toEqual([path, false]);
  });
});

interface Service {
  readonly image: string;
  readonly volumes: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly stop_grace_period?: string;
  readonly [key: string]: unknown;
}
const compose = (file: string) =>
  parse(readFileSync(join(DOCKER, file), "utf8")) as { services: Record<string, Service>; volumes: object };

describe("the compose files", () => {
  it.each([
    ["compose.yaml", "signalbox"],
    ["compose.cluster.yaml", "node"],
  ])("%s runs the service read-only, without rights, and waits for its stop", (file, name) => {
    const service = compose(file).services[name];
    expect(service).toMatchObject({
      build: { context: "../..", dockerfile: "deploy/docker/Dockerfile" },
      read_only: true,
      tmpfs: ["/tmp"],
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
    });
    expect(Number.parseInt(service?.stop_grace_period ?? "", 10)).toBeGreaterThan(5 + 10 + 10);
    expect(service?.volumes[0]).toMatch(/(^|:)\/data$/);
  });

  it("services and volumes that are named exist, and ports are open for this machine only", () => {
    for (const file of ["compose.yaml", "compose.cluster.yaml"]) {
      const { services, volumes } = compose(file);
      for (const { depends_on = {}, volumes: used, ports = [] } of Object.values(services)) {
        for (const name of Object.keys(depends_on)) expect(Object.keys(services)).toContain(name);
        for (const [, name] of used
          .map((text) => /^(\w+):/.exec(text) ?? [])
          .filter(([found]) => found !== undefined))
          expect(Object.keys(volumes)).toContain(name);
        for (const port of ports as string[]) expect(port).toMatch(/^127\.0\.0\.1:/);
      }
    }
    const { services } = compose("compose.cluster.yaml");
    expect(services["node"]?.environment?.["DATABASE_URL"]).toContain("@postgres:5432/");
  });

  it("HAProxy accepts the configuration of the balancer", () => {
    const haproxy = findHaproxy();
    if (haproxy === null) throw new Error(HAPROXY_IS_MISSING);
    const checked = spawnSync(haproxy, ["-c", "-f", join(DOCKER, "haproxy.cfg")], { encoding: "utf8" });
    expect([checked.status, checked.stdout + checked.stderr]).toEqual([0, expect.stringContaining("valid")]);
  });
});
