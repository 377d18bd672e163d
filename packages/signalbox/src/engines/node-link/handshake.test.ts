import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { DiallerHandshake, ListenerHandshake, toLinkKey } from "./handshake.ts";

const key = toLinkKey("a secret of the cluster");
const dialler = (secret = key, cluster = "c1", node = "2") => new DiallerHandshake(secret, { node, cluster });
const listener = (secret = key, cluster = "c1", node = "1") =>
  new ListenerHandshake(secret, { node, cluster });

/** Both sides run to the end. */
function link(a: DiallerHandshake, b: ListenerHandshake) {
  const { proof } = a.answer(b.answer(a.hello));
  const finished = b.finish(proof);
  return [a.finish(finished.proof ?? Buffer.from("")), finished.peer];
}

it("both sides learn the other's incarnation and one version", () => {
  expect(link(dialler(), listener())).toEqual([
    { node: "1", version: 2 },
    { node: "2", version: 2 },
  ]);
});

it("a stranger that dials learns nothing about the node, its cluster or its secret before it has proved itself", () => {
  const b = listener(key, "c1", "node-of-the-cluster");
  const hello = JSON.parse(b.answer(dialler(toLinkKey("wrong"), "c9").hello).toString()) as object;
  expect(hello).toEqual({ version: 2, nonce: expect.any(String) as string });
});

it("a wrong secret is noticed by the listener first, which then sends no proof", () => {
  const [a, b] = [dialler(toLinkKey("wrong")), listener()];
  expect(() => b.finish(a.answer(b.answer(a.hello)).proof)).toThrow("wrong cluster secret");
});

it("a listener without the secret is noticed by the dialler", () => {
  const [a, b] = [dialler(), listener(toLinkKey("wrong"))];
  a.answer(b.answer(a.hello));
  const forged = { node: "1", cluster: "c1", proof: "x".repeat(43) };
  expect(() => a.finish(Buffer.from(JSON.stringify(forged)))).toThrow("wrong cluster secret");
  expect(() => dialler().finish(Buffer.from("x"))).toThrow("before the hello");
});

it("a stranger cannot prove itself", () => {
  const [a, b] = [dialler(toLinkKey("wrong")), listener()];
  b.answer(a.hello);
  expect(() => b.finish(Buffer.from("x".repeat(43)))).toThrow("wrong cluster secret");
  expect(() => listener().finish(Buffer.from("x"))).toThrow("before the hello");
});

it("a proof is worthless on another connection, and when it is sent back", () => {
  const [a, b] = [dialler(), listener()];
  const { proof } = a.answer(b.answer(a.hello));
  const other = listener();
  other.answer(a.hello);
  expect(() => other.finish(proof)).toThrow("wrong cluster secret");
  const reflected = { node: "1", cluster: "c1", proof: proof.toString() };
  expect(() => a.finish(Buffer.from(JSON.stringify(reflected)))).toThrow("wrong cluster secret");
});

it("a changed field makes the proof wrong", () => {
  const [a, b] = [dialler(), listener()];
  const { proof } = a.answer(b.answer(a.hello));
  const changed = JSON.parse(String(b.finish(proof).proof)) as Record<string, unknown>;
  changed["node"] = "9";
  expect(() => a.finish(Buffer.from(JSON.stringify(changed)))).toThrow("wrong cluster secret");
});

it("nodes of two databases are not linked, even with the same secret", () => {
  expect(() => link(dialler(key, "c2"), listener())).toThrow("uses another database");
});

it("a node does not link to itself", () => {
  expect(() => link(dialler(key, "c1", "1"), listener())).toThrow("dialled itself");
});

describe("a node of the former release, whose listener proves itself first", () => {
  const encode = (value: object) => Buffer.from(JSON.stringify(value));
  const proofOf = (side: string, ...parts: readonly Buffer[]) => {
    const hmac = createHmac("sha256", key).update(side);
    for (const part of parts) hmac.update(`|${part.length}|`).update(part);
    return hmac.digest("base64url");
  };
  const helloIn = (cluster: string) =>
    encode({ node: "2", cluster, minVersion: 1, maxVersion: 1, nonce: "n".repeat(43) });

  it("links to this one, whichever of them dials", () => {
    const b = listener();
    const hello = helloIn("c1");
    const { proof, ...own } = JSON.parse(b.answer(hello).toString()) as Record<string, unknown>;
    expect([own["node"], own["version"]]).toEqual(["1", 1]);
    expect(proof).toBe(proofOf("listener", hello, encode(own)));
    expect(b.finish(Buffer.from(proofOf("dialler", hello, encode(own))))).toEqual({
      peer: { node: "2", version: 1 },
      proof: null,
    });

    const a = dialler();
    const former = { node: "1", cluster: "c1", version: 1, nonce: "n".repeat(43) };
    const answer = { ...former, proof: proofOf("listener", a.hello, encode(former)) };
    expect(a.answer(encode(answer))).toEqual({
      peer: { node: "1", version: 1 },
      proof: Buffer.from(proofOf("dialler", a.hello, encode(former))),
    });
    const forged = { ...former, proof: "x".repeat(43) };
    expect(() => dialler().answer(encode(forged))).toThrow("wrong cluster secret");
  });

  it("gets no proof if it does not know the random id of the cluster", () => {
    expect(() => listener().answer(helloIn("c2"))).toThrow("uses another database");
  });
});

it.each(["", "null", "[]", '{"node":1}', "{", `{"node":"${"x".repeat(300)}"}`])(
  "refuses the hello %j",
  (text) => {
    expect(() => listener().answer(Buffer.from(text))).toThrow("malformed hello");
    expect(() => dialler().answer(Buffer.from(text))).toThrow("malformed hello");
  },
);

it("refuses a node without a common version, naming both ranges", () => {
  const hello = { node: "2", cluster: "c1", nonce: "n", minVersion: 7, maxVersion: 9 };
  expect(() => listener().answer(Buffer.from(JSON.stringify(hello)))).toThrow("7 to 9 against 1 to 2");
});
