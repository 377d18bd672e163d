/** The `signalbox tags` commands. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCommand } from "../support/run-cli.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

const tags = (...args: string[]) => runCommand(server, ["tags", ...args]);

async function json(...args: string[]): Promise<unknown> {
  const { code, out, err } = await tags(...args, "--json");
  if (code !== 0) throw new Error(err);
  return JSON.parse(out);
}

it("tags of a resource are set, shown, merged and deleted", async () => {
  expect(await tags("set", "worker", "w1", "env=prod", "note=", "url=a=b")).toEqual({
    code: 0,
    out: "KEY   VALUE\nenv   prod\nnote\nurl   a=b\n",
    err: "",
  });
  expect(await json("get", "worker", "w1")).toMatchObject({ tags: { env: "prod", note: "", url: "a=b" } });
  const merged = (await json("patch", "worker", "w1", "env=dev", "note-")) as { etag: string; tags: object };
  expect(merged.tags).toEqual({ env: "dev", url: "a=b" });
  const stale = await tags("set", "worker", "w1", "env=x", "--if-match", "v1:AAAAAAAAAAAAAAAAAAAAAA");
  expect(stale).toEqual({ code: 1, out: "", err: "signalbox: etag does not match (code 1016)\n" });
  expect((await tags("delete", "worker", "w1", "--if-match", merged.etag)).out).toBe(
    "deleted the tags of worker w1\n",
  );
  expect((await tags("get", "worker", "w1")).err).toBe(
    "signalbox: resource not found: type=worker id=w1 (code 1004)\n",
  );
});

it("resources are found and counted; keys and values are listed", async () => {
  await tags("set", "worker", "a", "env=prod", "team=core");
  await tags("set", "queue", "b", "Env=Prod");
  expect((await tags("find", "env=prod", "!archived")).out).toBe(
    "TYPE    ID  NAME  TAGS\nworker  a   a     env=prod team=core\n",
  );
  expect(await json("find", "env=PROD", "--ignore-case", "--count")).toEqual({ count: 2 });
  expect(await json("find", "--type", "queue", "--type", "worker", "--count")).toEqual({ count: 2 });
  expect((await tags("find", "nothing")).out).toBe("no matching resources\n");
  expect(await json("keys", "--prefix", "e")).toEqual([{ key: "env", count: 1 }]);
  expect(await json("values", "team", "--type", "worker")).toEqual([{ value: "core", count: 1 }]);
  expect((await tags("values", "team", "--type", "queue")).out).toBe("no values\n");
});

it("the tags of all matching resources are changed in the background, counted, listed and cancelled", async () => {
  await tags("set", "worker", "j1", "job=yes", "env=prod");
  await tags("set", "worker", "j2", "job=yes", "env=dev");
  expect((await tags("change", "env=test", "--tag", "job", "--dry-run")).out).toBe("2 resources\n");
  expect(await tags("change", "env=test", "job-", "done=1", "--tag", "job=yes", "--wait")).toEqual({
    code: 0,
    out: "done: 2 of 2 resources, 2 changed, 0 unchanged, 0 failed\n",
    err: "",
  });
  expect(await json("get", "worker", "j2")).toMatchObject({ tags: { env: "test", done: "1" } });
  expect((await tags("change", "--delete", "--tag", "done", "--wait")).code).toBe(0);
  expect(await json("find", "done", "--count")).toEqual({ count: 0 });
  const [last] = (await json("jobs")) as { id: string; operation: string }[];
  expect(last?.operation).toBe("delete");
  expect((await tags("jobs", last?.id ?? "")).out).toMatch(/^done: 2 of 2 resources/);
  expect((await tags("cancel-job", last?.id ?? "")).out).toMatch(/^done: /);
  expect((await tags("change", "a=1")).err).toBe(
    "signalbox: give a filter (tag, type, id, name), or all: true for all tagged resources (code 7002)\n",
  );
  expect((await tags("change", "a=1", "--delete")).code).toBe(2);
});

it("an error is explained in one line", async () => {
  expect(await tags("set", "worker", "w", "novalue")).toMatchObject({
    code: 2,
    err: 'signalbox: expected key=value, found "novalue"\n',
  });
  expect(await tags("get", "worker")).toMatchObject({
    code: 2,
    err: 'signalbox: "tags get" needs <id>\n',
  });
  expect((await tags("find", "!a=b")).err).toContain("(code 1007)");
});
