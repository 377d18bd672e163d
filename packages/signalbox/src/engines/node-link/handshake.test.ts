import { expect, it } from "vitest";
import { DiallerHandshake, ListenerHandshake, toLinkKey } from "./handshake.ts";

const key = toLinkKey("a secret of the cluster");
const dialler = (secret = key, cluster = "c1", node = "2") => new DiallerHandshake(secret, { node, cluster });
const listener = (secret = key, cluster = "c1", node = "1") =>
  new ListenerHandshake(secret, { node, cluster });

it("both sides learn the other's incarnation and one version", () => {
  const [a, b] = [dialler(), listener()];
  const { peer, proof } = a.answer(b.answer(a.hello));
  expect([peer, b.finish(proof)]).toEqual([
    { node: "1", version: 1 },
    { node: "2", version: 1 },
  ]);
});

it("a wrong secret is noticed by the dialler first, which then sends no proof", () => {
  const [a, b] = [dialler(toLinkKey("wrong")), listener()];
  expect(() => a.answer(b.answer(a.hello))).toThrow("wrong cluster secret");
});

it("a stranger cannot prove itself", () => {
  const [a, b] = [dialler(toLinkKey("wrong")), listener()];
  b.answer(a.hello);
  expect(() => b.finish(Buffer.from("x".repeat(43)))).toThrow("wrong cluster secret");
  expect(() => listener().finish(Buffer.from("x"))).toThrow("before the hello");
});

it("a proof is worthless on another connection, and when it is sent back", () => {
  const [a, b] = [dialler(), listener()];
  const hello = b.answer(a.hello);
  const { proof } = a.answer(hello);
  const other = listener();
  other.answer(a.hello);
  expect(() => other.finish(proof)).toThrow("wrong cluster secret");
  const own = (JSON.parse(hello.toString()) as { proof: string }).proof;
  expect(() => b.finish(Buffer.from(own))).toThrow("wrong cluster secret");
});

it("a changed field makes the proof wrong", () => {
  const [a, b] = [dialler(), listener()];
  const changed = JSON.parse(b.answer(a.hello).toString()) as Record<string, unknown>;
  changed["node"] = "9";
  expect(() => a.answer(Buffer.from(JSON.stringify(changed)))).toThrow("wrong cluster secret");
});

it("nodes of two databases are not linked, even with the same secret", () => {
  const [a, b] = [dialler(key, "c2"), listener()];
  const hello = b.answer(a.hello);
  expect(() => a.answer(hello)).toThrow("uses another database");
});

it("a node does not link to itself", () => {
  const [a, b] = [dialler(key, "c1", "1"), listener()];
  expect(() => a.answer(b.answer(a.hello))).toThrow("dialled itself");
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
  expect(() => listener().answer(Buffer.from(JSON.stringify(hello)))).toThrow("7 to 9 against 1 to 1");
});
