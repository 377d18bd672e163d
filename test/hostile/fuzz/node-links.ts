/**
 * Frames on the port of a cluster, of strangers and of a member with defects. The nodes stay alive, a bystander's link keeps working, no
 * stranger's call is handled, and the connection of a stranger ends.
 */
import { connect } from "node:net";
import { FRAME_KINDS, HEADER_BYTES } from "../../../packages/signalbox/src/engines/node-link/frame.ts";
import { DiallerHandshake, toLinkKey } from "../../../packages/signalbox/src/engines/node-link/handshake.ts";
import { openLinks, peerOf } from "../../../packages/signalbox/src/engines/node-link/links-fixture.ts";
import { pick, type Random } from "../../support/ledger/random.ts";
import { chance, cutAt, mutate, randomBytes, repeat, splits, upTo } from "./bytes.ts";
import { type Arena, defineTarget } from "./fuzz-target.ts";

interface Input {
  /** A member knows the secret, and sends these bytes after its handshake. */
  readonly isMember: boolean;
  readonly bytes: string;
  readonly splits: readonly number[];
}

const SECRET = "a secret of the cluster";
const MEMBER = "9";
const PAYLOADS = [
  "",
  "{",
  "null",
  "[]",
  '{"code":null}',
  '{"code":{"toString":1},"message":{"toString":1}}',
  '{"code":"moved","message":"m","details":{"__proto__":1}}',
  "\u0004echo payload",
  "\u0006stream payload",
  "\u00ff",
  "\u0000",
  "\u0000\u0000\u0004\u0000",
  "\u00ff\u00ff\u00ff\u00ff",
  '{"node":"7","cluster":"test","minVersion":1,"maxVersion":1,"nonce":"n"}',
  '{"node":"9","cluster":"test","version":1,"nonce":"n","proof":"p"}',
];

function randomFrame(random: Random): string {
  const payload = chance(random, 0.2) ? randomBytes(random, 300) : pick(random, PAYLOADS);
  const changed = chance(random, 0.2) ? mutate(random, payload) : payload;
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt32LE(chance(random, 0.05) ? upTo(random, 2 ** 32) : changed.length, 0);
  head[4] = chance(random, 0.1) ? upTo(random, 256) : pick(random, Object.values(FRAME_KINDS));
  head.writeUInt32LE(chance(random, 0.7) ? upTo(random, 6) : upTo(random, 2 ** 32), 5);
  return head.toString("latin1") + changed;
}

export const nodeLinksTarget = defineTarget<Input>({
  name: "node-links",
  summary: "frames on the port between nodes, before and after the handshake",
  shortRun: 400,
  width: 8,
  generate(random) {
    const frames = repeat(random, 8, () => randomFrame(random)).join("");
    const bytes = chance(random, 0.3) ? mutate(random, frames) : frames;
    return { isMember: chance(random, 0.5), bytes, splits: splits(random, bytes.length) };
  },
  open: openArena,
});

async function openArena(): Promise<Arena<Input>> {
  let handled = 0;
  const one = await openLinks("1", {
    onCall: (_name, payload, from) => {
      if (from.peer.node !== "2" && from.peer.node !== MEMBER) handled += 1;
      return payload;
    },
    onStream: (_name, _payload, stream) =>
      stream.start({
        onData: (bytes) => void stream.write(bytes),
        onEnd: () => stream.end(),
        onFailure: () => undefined,
      }),
  });
  const two = await openLinks("2");
  one.setPeers([peerOf("2", two, false), { node: MEMBER, host: "127.0.0.1", port: 1, isDialled: false }]);
  two.setPeers([peerOf("1", one, true)]);
  while (two.to("1") === null) await new Promise((resolve) => setTimeout(resolve, 1));
  return {
    async attempt({ isMember, bytes, splits: positions }) {
      const socket = connect(one.port, "127.0.0.1");
      // The node may reset the connection at any time.
      socket.on("error", () => undefined);
      const closed = new Promise<null>((resolve) => socket.once("close", () => resolve(null)));
      if (isMember) {
        const handshake = new DiallerHandshake(toLinkKey(SECRET), { node: MEMBER, cluster: "test" });
        socket.write(frameOf(FRAME_KINDS.hello, handshake.hello));
        const answered = new Promise<Buffer>((resolve) => socket.once("data", resolve));
        const answer = await Promise.race([answered, closed]);
        if (answer === null) throw new Error("a member was refused before it sent anything wrong");
        socket.write(frameOf(FRAME_KINDS.proof, handshake.answer(answer.subarray(HEADER_BYTES)).proof));
      }
      socket.resume();
      for (const part of cutAt(bytes, positions)) {
        socket.write(part);
        await new Promise((resolve) => setImmediate(resolve));
      }
      socket.end();
      await closed;
    },
    async check() {
      const answer = await two.call("1", "echo", Buffer.from("bystander"));
      if (String(answer) !== "bystander") throw new Error("the link of a bystander answers wrongly");
      if (handled > 0) throw new Error(`${handled} calls of strangers were handled`);
    },
    async close() {
      await Promise.all([one.close(), two.close()]);
    },
  };
}

function frameOf(kind: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeUInt32LE(payload.length, 0);
  head[4] = kind;
  return Buffer.concat([head, payload]);
}
