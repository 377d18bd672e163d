/** A node that is paused, or joins, while another one writes settings. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { RawClient, TEST_AGENTS } from "../support/agents.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { waitUntil } from "../support/wait-until.ts";

const TOKENS = "/accounts/default/tokens";
const GATEWAYS = "/accounts/default/ai-gateway/gateways";
let cluster: TestCluster;
let a: ClusterNodeProcess;
let b: ClusterNodeProcess;
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 1, file: { agents: { modules: [TEST_AGENTS] } } });
  [a] = cluster.nodes as [ClusterNodeProcess];
  b = await cluster.join({ name: "node-2", mayDie: true });
});
afterAll(() => cluster.stop());
// A test that failed may have left the node paused.
beforeEach(async () => {
  b.child.kill("SIGCONT");
  for (const node of [a, b])
    await waitUntil(
      () => node.api("GET", "/readyz", undefined, null),
      ({ status }) => status === 200,
    );
});

interface Made {
  readonly id: string;
  readonly token: string;
}

async function make(): Promise<Made> {
  return (await a.api("POST", TOKENS, { name: "t", permissions: ["gateway.read"] })).body.result as Made;
}

const use = async (node: ClusterNodeProcess, { token }: Made) =>
  (await node.api("GET", GATEWAYS, undefined, token)).status;

it("a paused node holds up a revocation until it is declared dead, and then refuses the token before it answers", async () => {
  const made = await make();
  expect(await use(b, made)).toBe(200);
  for (let round = 0; round < 3; round++) {
    const again = await make();
    b.child.kill("SIGSTOP");
    // Sent to the paused process: the kernel accepts the connection, and the request waits there.
    const waiting = use(b, again);
    expect((await a.api("DELETE", `${TOKENS}/${again.id}`)).status).toBe(200);
    b.child.kill("SIGCONT");
    expect(await waiting).toBe(401);
    expect(await use(b, again)).toBe(401);
    // The node has come back, and hears of changes.
    expect(await use(b, made)).toBe(200);
  }
  expect(b.stderr()).toContain("declared dead, and has joined again");
  expect((await a.api("DELETE", `${TOKENS}/${made.id}`)).status).toBe(200);
  expect(await use(b, made)).toBe(401);
});

/** An instance that the node runs: the sockets of others are closed when the node comes back, whatever their token. */
async function nameAt(node: ClusterNodeProcess): Promise<string> {
  for (let i = 0; ; i++) {
    const name = `paused-${i}`;
    expect((await node.api("POST", `/agents/counter/${name}/rpc/read`, [])).status).toBe(200);
    const { body } = await node.api("GET", `/accounts/default/agents/counter/instances?search=${name}`);
    const [entry] = body.result as { node: string }[];
    if (entry?.node === node.name) return name;
  }
}

it("messages of a revoked token that arrived during the pause are not handled", async () => {
  const permissions = ["agents.edit"];
  const made = (await a.api("POST", TOKENS, { name: "t", permissions })).body.result as Made;
  const name = await nameAt(b);
  const client = await new RawClient(`${b.url}/agents/counter/${name}`, { token: made.token }).opened();
  await client.greeted();
  expect((await client.call("increment", 1)).success).toBe(true);
  b.child.kill("SIGSTOP");
  client.send({ type: "rpc", id: "late", method: "increment", args: [100] });
  expect((await a.api("DELETE", `${TOKENS}/${made.id}`)).status).toBe(200);
  b.child.kill("SIGCONT");
  expect(await client.closed()).toBe(4401);
  const other = await new RawClient(`${b.url}/agents/counter/${name}`).opened();
  await other.greeted();
  expect((await other.call("read")).result).toMatchObject({ count: 1 });
  other.close();
});

it("a pause that is too short for a declaration changes nothing", async () => {
  const made = await make();
  b.child.kill("SIGSTOP");
  const revoked = a.api("DELETE", `${TOKENS}/${made.id}`);
  await new Promise((resolve) => setTimeout(resolve, 300));
  b.child.kill("SIGCONT");
  expect((await revoked).status).toBe(200);
  expect(await use(b, made)).toBe(401);
});

it("a revocation that is repeated, because its node was killed, is answered when the others have read it", async () => {
  const made = await make();
  const dying = await cluster.join({ name: "dying", mayDie: true });
  expect(await use(b, made)).toBe(200);
  b.child.kill("SIGSTOP");
  // It is committed, and waits for the paused node.
  const first = dying.api("DELETE", `${TOKENS}/${made.id}`).catch(() => null);
  await waitUntil(
    () => use(a, made),
    (status) => status === 401,
  );
  dying.child.kill("SIGKILL");
  await first;
  const again = await a.api("DELETE", `${TOKENS}/${made.id}`);
  b.child.kill("SIGCONT");
  expect(again.status).toBe(404);
  expect(await use(b, made)).toBe(401);
});

it("a node that starts while tokens are revoked has missed none of them", async () => {
  const tokens: Made[] = [];
  for (let i = 0; i < 200; i++) tokens.push(await make());
  let isStarted = false;
  const joining = cluster.join({ name: "late" }).finally(() => (isStarted = true));
  const revoked: Made[] = [];
  while (!isStarted) {
    const next = tokens.pop() ?? (await make());
    expect((await a.api("DELETE", `${TOKENS}/${next.id}`)).status).toBe(200);
    revoked.push(next);
  }
  const late = await joining;
  const statuses = await Promise.all(revoked.map((made) => use(late, made)));
  expect(statuses.filter((status) => status !== 401 && status !== 429)).toEqual([]);
  for (const made of tokens.slice(0, 3)) expect(await use(late, made)).toBe(200);
});

it("two nodes that write the same rows at once end with the same settings, and lose no change", async () => {
  const gateway = `${GATEWAYS}/default`;
  const made = await make();
  // Each of the four waits for its own writes only, so its last one must be there at the end.
  const inTurn = async (write: (i: number) => Promise<{ status: number }>) => {
    for (let i = 0; i < 20; i++) expect((await write(i)).status).toBe(200);
  };
  const writes: Promise<unknown>[] = [
    inTurn((i) => a.api("PUT", gateway, { cache_ttl: 100 + i })),
    inTurn((i) => b.api("PUT", gateway, { rate_limiting_limit: 100 + i })),
    inTurn((i) => a.api("PATCH", `${TOKENS}/${made.id}`, { name: `name-${i}` })),
    inTurn((i) => b.api("PATCH", `${TOKENS}/${made.id}`, { metadata: { round: String(i) } })),
  ];
  // Of two that create the same gateway, one is told of the conflict.
  for (let i = 0; i < 5; i++) {
    const both = [a, b].map((node) => node.api("POST", GATEWAYS, { id: `g${i}` }));
    writes.push(
      ...both,
      Promise.all(both).then((answers) =>
        expect(answers.map(({ status }) => status).toSorted((x, y) => x - y)).toEqual([200, 409]),
      ),
    );
  }
  await Promise.all(writes);
  const [one, other] = [await a.api("GET", gateway), await b.api("GET", gateway)];
  expect(one.body.result).toEqual(other.body.result);
  expect(one.body.result).toMatchObject({ cache_ttl: 119, rate_limiting_limit: 119 });
  const token = (await b.api("GET", `${TOKENS}/${made.id}`)).body.result;
  expect(token).toMatchObject({ name: "name-19", metadata: { round: "19" } });
});
