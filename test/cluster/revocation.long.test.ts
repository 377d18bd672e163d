/** A token that is revoked at one node is refused by every other node from the next request on. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Answer } from "../support/send-request.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";

/** More by hand: `REVOCATIONS=10000 npx vitest run test/cluster/revocation.long.test.ts`. */
const REVOCATIONS = Number(process.env["REVOCATIONS"] ?? 1000);
const AT_ONCE = 8;
const TOKENS = "/accounts/default/tokens";

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 3 });
});
afterAll(() => cluster.stop());

interface Created {
  readonly id: string;
  readonly token: string;
}

async function createToken(node: ClusterNodeProcess): Promise<Created> {
  const answer = await node.api("POST", TOKENS, { name: "t", permissions: ["gateway.read"] });
  return (answer.body as { result: Created }).result;
}

const use = (node: ClusterNodeProcess, { token }: Created): Promise<Answer> =>
  node.api("GET", "/accounts/default/ai-gateway/gateways", undefined, token);

it("is refused at every other node, every time", { timeout: 60_000 + REVOCATIONS * 300 }, async () => {
  const { nodes } = cluster;
  const at = (i: number) => nodes[i % nodes.length] as ClusterNodeProcess;
  let accepted = 0;
  let refused = 0;
  const one = async (i: number) => {
    const token = await createToken(at(i));
    // Valid everywhere when its text is returned.
    if ((await use(at(i + 1), token)).status === 200) accepted += 1;
    const { status } = await at(i).api("DELETE", `${TOKENS}/${token.id}`);
    expect(status).toBe(200);
    const after = await Promise.all([use(at(i + 1), token), use(at(i + 2), token)]);
    // 429: the address has sent many unknown tokens. A valid one is never answered with it.
    if (after.every(({ status: code }) => code === 401 || code === 429)) refused += 1;
  };
  const worker = async (first: number) => {
    for (let i = first; i < REVOCATIONS; i += AT_ONCE) await one(i);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => worker(i)));
  expect({ accepted, refused }).toEqual({ accepted: REVOCATIONS, refused: REVOCATIONS });
});
