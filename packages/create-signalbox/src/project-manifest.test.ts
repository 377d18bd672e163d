import { join } from "node:path";
import { expect, it } from "vitest";
import { nodeOfScripts, projectManifest } from "./project-manifest.ts";

const CLONE = join(import.meta.dirname, "../../..");

it("a project that is created in a clone depends on the clone, by a relative path", () => {
  const { content } = projectManifest("app", join(CLONE, "../app"), "24.0.0");
  const path = `file:../${CLONE.split("/").at(-1)}/packages/signalbox`;
  expect(content).toMatchObject({ dependencies: { signalbox: path } });
});

it("a project brings its own Node if npm runs on an older one, whatever runs this command", () => {
  const old = nodeOfScripts("npm/10.8.2 node/v20.20.2 linux arm64 workspaces/false");
  expect(old).toBe("20.20.2");
  expect(projectManifest("app", CLONE, old)).toMatchObject({
    hasOwnNode: true,
    content: { dependencies: { node: "^24.0.0" }, engines: { node: ">=20" } },
  });
  expect(nodeOfScripts("")).toBe(process.versions.node);
});
