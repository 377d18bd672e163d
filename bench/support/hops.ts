/** What crosses the link of two nodes, without the work at its end: a call, a message of a WebSocket with its answer, a call of an object. */
import { CallSession } from "../../packages/signalbox/src/agents/remote/objects/call-session.ts";
import { ItemChannel, readItems } from "../../packages/signalbox/src/agents/remote/sockets/item-channel.ts";
import {
  decodeMessage,
  encodeItem,
  encodeMessage,
  encodeNumbers,
  encodeReceivers,
  type Item,
  ITEM_KINDS,
  readNumber,
} from "../../packages/signalbox/src/agents/remote/sockets/socket-items.ts";
import { toFrame } from "../../packages/signalbox/src/engines/http-server/index.ts";
import {
  type LinkHandler,
  Links,
  type LinkStream,
} from "../../packages/signalbox/src/engines/node-link/index.ts";

const REQUEST = Buffer.alloc(4096, "x");
const TEXT = "x".repeat(4096);
const ANSWER = Buffer.alloc(100, "y");
const FRAME = toFrame("y".repeat(100));
const SOCKETS = "sockets";
const SOCKET_COUNT = 64;

type Host = ConstructorParameters<typeof CallSession>[1];

/** Calls of the benchmark pass plain values only. */
const HOST: Partial<Host> = { sessions: new Map() };

const handler: LinkHandler = {
  onCall: () => ANSWER,
  onStream: (name, payload, stream) => {
    if (name === SOCKETS) answerMessages(stream);
    else
      new CallSession("owner", HOST as Host, "2").serve(payload, stream, () =>
        Promise.resolve({ text: String(ANSWER) }),
      );
  },
};

function openChannel(stream: LinkStream, onItem: (item: Item, channel: ItemChannel) => void): ItemChannel {
  const channel: ItemChannel = new ItemChannel((item) => onItem(item, channel));
  channel.attach(stream, 0);
  readItems(stream, {
    onItem: (item) => channel.deliver(stream, item),
    onEnd: () => channel.detach(stream),
    onDrain: () => channel.drained(stream),
  });
  return channel;
}

/** The owner: each message gets a frame, and its end. */
function answerMessages(stream: LinkStream): void {
  openChannel(stream, ({ payload }, channel) => {
    const { number, ticket } = decodeMessage(payload);
    channel.send({ encode: () => encodeItem(ITEM_KINDS.frame, encodeReceivers([number]), FRAME) });
    channel.send({ encode: () => encodeItem(ITEM_KINDS.ended, encodeNumbers(number, ticket)) });
  });
}

/** The edge: the returned function sends a message of a socket, and resolves when it has ended. */
function openSockets(stream: LinkStream): () => Promise<void> {
  const waiting = new Map<number, () => void>();
  const channel = openChannel(stream, ({ kind, payload }) => {
    if (kind !== ITEM_KINDS.ended) return;
    const ticket = readNumber(payload, 4);
    waiting.get(ticket)?.();
    waiting.delete(ticket);
  });
  let next = 1;
  return () =>
    new Promise((resolve) => {
      const ticket = next++;
      waiting.set(ticket, resolve);
      const pieces = encodeMessage({ number: ticket % SOCKET_COUNT, ticket, message: TEXT });
      channel.send({ encode: () => encodeItem(ITEM_KINDS.message, ...pieces) });
    });
}

/** Each resolves when the answer has arrived. */
export interface HopPair {
  readonly call: () => Promise<unknown>;
  readonly message: () => Promise<unknown>;
  readonly object: () => Promise<unknown>;
  readonly close: () => Promise<unknown>;
}

export async function openHopPair(isEncrypted: boolean): Promise<HopPair> {
  const open = (node: string) =>
    Links.listen(
      { host: "127.0.0.1", port: 0 },
      {
        self: { node, cluster: "bench" },
        security: { secret: "only for this benchmark", isEncrypted },
        handler,
      },
    );
  const [one, two] = await Promise.all([open("1"), open("2")]);
  one.setPeers([{ node: "2", host: "127.0.0.1", port: two.port, isDialled: false }]);
  two.setPeers([{ node: "1", host: "127.0.0.1", port: one.port, isDialled: true }]);
  while (two.to("1") === null || one.to("2") === null) await new Promise((resolve) => setTimeout(resolve, 5));
  const link = two.to("1");
  if (link === null) throw new Error("there is no link");
  return {
    call: () => two.call("1", "deliver", REQUEST),
    message: openSockets(link.openStream(SOCKETS, Buffer.from(""))),
    object: () =>
      new CallSession("caller", { ...HOST, network: { linkTo: () => link } } as Host, "1").open(
        ["an address", "a method", [TEXT]],
        "object",
      ),
    close: () => Promise.all([one.close(), two.close()]),
  };
}
