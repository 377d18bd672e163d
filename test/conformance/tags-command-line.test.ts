/** `signalbox tags …`, as a person or a script uses it. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCli } from "../../packages/signalbox/src/cli/main.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

async function tags(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  let stdout = "";
  let stderr = "";
  const code = await runCli(["tags", ...args], {
    out: { write: (text: string) => (stdout += text) },
    err: { write: (text: string) => (stderr += text) },
    environment: { SIGNALBOX_URL: server.url, SIGNALBOX_TOKEN: ROOT_TOKEN },
    workingFolder: server.dataDir,
  });
  return { code, stdout, stderr };
}

async function json(...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await tags(...args, "--json");
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

it("sets, shows, merges and deletes the tags of a resource", async () => {
  expect(await tags("set", "worker", "w1", "env=prod", "note=", "url=a=b")).toEqual({
    code: 0,
    stdout: "KEY   VALUE\nenv   prod\nnote\nurl   a=b\n",
    stderr: "",
  });
  expect(await json("get", "worker", "w1")).toMatchObject({ tags: { env: "prod", note: "", url: "a=b" } });
  const merged = (await json("patch", "worker", "w1", "env=dev", "note-")) as { etag: string; tags: object };
  expect(merged.tags).toEqual({ env: "dev", url: "a=b" });
  const stale = await tags("set", "worker", "w1", "env=x", "--if-match", "v1:AAAAAAAAAAAAAAAAAAAAAA");
  expect(stale).toEqual({ code: 1, stdout: "", stderr: "signalbox: etag does not match (code 1016)\n" });
  expect((await tags("rm", "worker", "w1", "--if-match", merged.etag)).stdout).toBe(
    "deleted the tags of worker w1\n",
  );
  expect((await tags("get", "worker", "w1")).stderr).toBe(
    "signalbox: resource not found: type=worker id=w1 (code 1004)\n",
  );
});

it("finds resources, counts them, and lists keys and values", async () => {
  await tags("set", "worker", "a", "env=prod", "team=core");
  await tags("set", "queue", "b", "Env=Prod");
  expect((await tags("find", "env=prod", "!archived")).stdout).toBe(
    "TYPE    ID  NAME  TAGS\nworker  a   a     env=prod team=core\n",
  );
  expect(await json("find", "env=PROD", "--ignore-case", "--count")).toEqual({ count: 2 });
  expect(await json("find", "--type", "queue", "--type", "worker", "--count")).toEqual({ count: 2 });
  expect((await tags("find", "nothing")).stdout).toBe("no matching resources\n");
  expect(await json("keys", "--prefix", "e")).toEqual([{ key: "env", count: 1 }]);
  expect(await json("values", "team", "--type", "worker")).toEqual([{ value: "core", count: 1 }]);
  expect((await tags("values", "team", "--type", "queue")).stdout).toBe("no values\n");
});

it("explains what is wrong in one line", async () => {
  expect(await tags("set", "worker", "w", "novalue")).toMatchObject({
    code: 2,
    stderr: 'signalbox: expected key=value, found "novalue"\n',
  });
  expect(await tags("get", "worker")).toMatchObject({
    code: 2,
    stderr: 'signalbox: "tags get" needs <id>\n',
  });
  expect((await tags("find", "!a=b")).stderr).toContain("(code 1007)");
});
