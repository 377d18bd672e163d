/**
 * Frames, valid and invalid, on accepted and refused sockets. The process stays alive, a bystander's connection keeps
 * working, the server's frames are well-formed, and a protocol violation closes the connection with a close code, as
 * does the end of its credential.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { RawClient, TEST_AGENTS } from "../../support/agents.ts";
import { pick, type Random } from "../../support/ledger/random.ts";
import { ROOT_TOKEN } from "../../support/test-server.ts";
import { type AttackedServer, startAttackedServer } from "../support/attacked-server.ts";
import { chance, cutAt, mutate, randomBytes, repeat, splits, upTo } from "./bytes.ts";
import { type Arena, defineTarget } from "./fuzz-target.ts";

interface Input {
  readonly place: keyof typeof PLACES;
  readonly frames: string;
  readonly splits: readonly number[];
  /** True if the last frame violates the protocol, so that the server has to close. */
  readonly isViolation: boolean;
  readonly isCut: boolean;
}

/**
 * Where a client may connect. Only the first two are accepted; the token of the second is revoked while frames
 * arrive.
 */
const PLACES = {
  accepted: { path: "/agents/counter/fuzzed", token: ROOT_TOKEN },
  revoked: { path: "/agents/counter/fuzzed", token: "made for it" },
  "no token": { path: "/agents/counter/fuzzed", token: null },
  "wrong token": { path: "/agents/counter/fuzzed", token: "sbx_nonsense" },
  "unknown agent": { path: "/agents/nope/fuzzed", token: ROOT_TOKEN },
  "invalid name": { path: "/agents/counter/%00", token: ROOT_TOKEN },
} as const;

const TEXTS = [
  "",
  "{",
  "null",
  "{}",
  "hello",
  '{"type":"rpc"}',
  '{"type":"rpc","id":"1","method":"read","args":[]}',
  '{"type":"rpc","id":"1","method":"__proto__","args":[]}',
  '{"type":"cf_agent_state","state":null}',
  '{"type":"cf_agent_state","state":{"count":1}}',
  '{"type":"cf_agent_identity"}',
  "[".repeat(5000),
];

export const websocketFramesTarget = defineTarget<Input>({
  name: "websocket-frames",
  summary: "WebSocket frames on accepted and refused sockets",
  shortRun: 320,
  width: 8,
  generate(random) {
    const place = chance(random, 0.5)
      ? "accepted"
      : pick(random, Object.keys(PLACES) as (keyof typeof PLACES)[]);
    const before = repeat(random, 3, () => rightFrame(random)).join("");
    const isViolation = chance(random, 0.5);
    const last = isViolation ? violation(random) : mutate(random, rightFrame(random));
    const frames = before + last;
    return { place, frames, splits: splits(random, frames.length), isViolation, isCut: chance(random, 0.15) };
  },
  open,
});

interface FrameParts {
  readonly opcode: number;
  readonly payload: string;
  readonly isFinal?: boolean;
  readonly reserved?: number;
  readonly isMasked?: boolean;
}

/** A client's frame (RFC 6455, section 5.2). */
function frame(
  random: Random,
  { opcode, payload, isFinal = true, reserved = 0, isMasked = true }: FrameParts,
): string {
  const head = [(isFinal ? 0x80 : 0) | (reserved << 4) | opcode];
  const masked = isMasked ? 0x80 : 0;
  if (payload.length < 126) head.push(masked | payload.length);
  else if (payload.length < 65_536) head.push(masked | 126, payload.length >> 8, payload.length & 255);
  else
    head.push(
      masked | 127,
      0,
      0,
      0,
      0,
      0,
      payload.length >> 16,
      (payload.length >> 8) & 255,
      payload.length & 255,
    );
  if (!isMasked) return String.fromCharCode(...head) + payload;
  const mask = Array.from({ length: 4 }, () => upTo(random, 256));
  const bytes = Buffer.from(payload, "latin1");
  bytes.forEach((byte, i) => (bytes[i] = byte ^ (mask[i % 4] ?? 0)));
  return String.fromCharCode(...head, ...mask) + bytes.toString("latin1");
}

function rightFrame(random: Random): string {
  switch (upTo(random, 5)) {
    case 0:
      return frame(random, { opcode: 2, payload: randomBytes(random, 300) });
    case 1:
      return frame(random, { opcode: 9, payload: randomBytes(random, 125) });
    case 2:
      return frame(random, { opcode: 10, payload: randomBytes(random, 125) });
    case 3: {
      const text = pick(random, TEXTS);
      return (
        frame(random, { opcode: 1, payload: text.slice(0, 5), isFinal: false }) +
        frame(random, { opcode: 0, payload: text.slice(5) })
      );
    }
    default:
      return frame(random, { opcode: 1, payload: pick(random, TEXTS) });
  }
}

/** One complete frame that a server must refuse. */
function violation(random: Random): string {
  return pick(random, [
    () => frame(random, { opcode: 1, payload: "x", reserved: 1 + upTo(random, 3) }),
    () => frame(random, { opcode: pick(random, [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]), payload: "x" }),
    () => frame(random, { opcode: pick(random, [1, 2, 9]), payload: "unmasked", isMasked: false }),
    () => frame(random, { opcode: pick(random, [8, 9, 10]), payload: "x".repeat(126) }),
    () => frame(random, { opcode: 9, payload: "", isFinal: false }),
    () => frame(random, { opcode: 0, payload: "continues nothing" }),
    () => frame(random, { opcode: 1, payload: "\xff\xfe" }),
    () => frame(random, { opcode: 8, payload: "\x03" }),
    () =>
      frame(random, {
        opcode: 8,
        payload: String.fromCharCode(
          ...pick(random, [
            [0, 0],
            [3, 236],
            [3, 237],
            [3, 238],
            [255, 255],
          ]),
        ),
      }),
    () => frame(random, { opcode: 1, payload: "x".repeat(70_000), reserved: 4 }),
    // Announces 2^63 bytes.
    () => "\x81\xff\x80\0\0\0\0\0\0\0\0\0\0\0",
    // Announces more than the message limit.
    () => "\x81\xff\0\0\0\0\x40\0\0\0\x01\x02\x03\x04abc",
  ])();
}

/** How long the server may take to close after a violation; generous, since time is not measured here. */
const CLOSE_MS = 600_000;

async function open(): Promise<Arena<Input>> {
  const server = await startAttackedServer({ agents: { modules: [TEST_AGENTS] } });
  const bystander = await new RawClient(`${server.url}/agents/counter/bystander`).opened();
  await bystander.greeted();
  let calls = 0;
  return {
    attempt: (input) => exchange(server, input),
    async check() {
      await server.check();
      const answer = (await bystander.call("increment", 1)) as { success: boolean; result: number };
      calls += 1;
      if (answer.result !== calls) throw new Error(`a bystander was answered ${JSON.stringify(answer)}`);
    },
    async close() {
      bystander.close();
      await server.close();
    },
  };
}

async function exchange(
  { url, port }: AttackedServer,
  { place, frames, splits, isViolation, isCut }: Input,
): Promise<void> {
  const { path } = PLACES[place];
  const temporary = place === "revoked" ? await makeToken(url) : null;
  const token = temporary?.token ?? PLACES[place].token;
  const socket = connect(port, "127.0.0.1").setNoDelay();
  let received = "";
  let isReset = false;
  let isWaiting = false;
  socket.setEncoding("latin1");
  socket.on("error", () => (isReset = true));
  socket.on("data", (chunk: string) => {
    received += chunk;
    // The server waits for the client's close frame and disconnects after some seconds without one.
    if (isWaiting && hasClosed(received)) socket.end();
  });
  await once(socket, "connect");
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const credential = token === null ? "" : `Authorization: Bearer ${token}\r\n`;
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${credential}\r\n`,
  );
  // Frames may arrive before the response to the handshake, from a client that does not wait.
  let revocation: Promise<void> | undefined;
  for (const [i, part] of cutAt(frames, splits).entries()) {
    if (i === 1) revocation = temporary?.revoke();
    if (socket.writable) socket.write(Buffer.from(part));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await (revocation ?? temporary?.revoke());
  if (isCut) {
    socket.destroy();
    await closed;
    return;
  }
  // The server has to close after a violation and when the credential has ended.
  const mustClose = isViolation || temporary !== null;
  isWaiting = true;
  if (!mustClose || hasClosed(received)) socket.end();
  const timer = setTimeout(() => socket.destroy(), CLOSE_MS);
  await closed;
  clearTimeout(timer);
  const headEnd = received.indexOf("\r\n\r\n");
  if (!received.startsWith("HTTP/1.1 101 ")) {
    if (!isReset && headEnd === -1) throw new Error(`${place}: the handshake was not answered`);
    return;
  }
  const codes = closeCodesIn(received);
  if (mustClose && !isReset && codes.length === 0) throw new Error(`${place}: closed without a code`);
}

interface TemporaryToken {
  readonly token: string;
  revoke(): Promise<void>;
}

async function makeToken(url: string): Promise<TemporaryToken> {
  const path = `${url}/accounts/default/tokens`;
  const headers = { authorization: `Bearer ${ROOT_TOKEN}`, "content-type": "application/json" };
  const body = JSON.stringify({ name: "temporary", permissions: ["agents.edit"] });
  const response = await fetch(path, { method: "POST", headers, body });
  const { result } = (await response.json()) as { result: { id: string; token: string } };
  return {
    token: result.token,
    async revoke() {
      const answer = await fetch(`${path}/${result.id}`, { method: "DELETE", headers });
      if (answer.status !== 200) throw new Error(`revoking was answered ${answer.status}`);
      await answer.arrayBuffer();
    },
  };
}

/** The codes of close frames after the response to the handshake. */
function closeCodesIn(received: string): number[] {
  const headEnd = received.indexOf("\r\n\r\n");
  return headEnd === -1 || !received.startsWith("HTTP/1.1 101 ")
    ? []
    : readCloseCodes(received.slice(headEnd + 4));
}

/** True if the server has sent a close frame, or bytes that the final check will judge. */
function hasClosed(received: string): boolean {
  try {
    return closeCodesIn(received).length > 0;
  } catch {
    return true;
  }
}

/**
 * Reads the server's frames, which must be complete, unmasked and without reserved bits; returns the codes of close
 * frames.
 */
function readCloseCodes(text: string): number[] {
  const bytes = Buffer.from(text, "latin1");
  const codes: number[] = [];
  for (let at = 0; at < bytes.length;) {
    const first = bytes[at] ?? 0;
    const short = bytes[at + 1] ?? 0;
    if ((first & 0x70) !== 0 || (short & 0x80) !== 0) throw new Error("the server's frame is malformed");
    const size = short === 126 ? 2 : short === 127 ? 8 : 0;
    if (at + 2 + size > bytes.length) return codes;
    const length =
      size === 2 ? bytes.readUInt16BE(at + 2) : size === 8 ? Number(bytes.readBigUInt64BE(at + 2)) : short;
    const start = at + 2 + size;
    // The end of a connection may cut off a frame.
    if (start + length > bytes.length) return codes;
    if ((first & 0x0f) === 8) {
      if (length === 1) throw new Error("the server closed with half a code");
      // A close frame without a code is answered without one; 1005 stands for that.
      codes.push(length === 0 ? 1005 : bytes.readUInt16BE(start));
    }
    at = start + length;
  }
  return codes;
}
