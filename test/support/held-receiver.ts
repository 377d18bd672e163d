/** An HTTP receiver that holds its responses until it is released, to keep webhook handlers busy. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface HeldReceiver {
  readonly url: string;
  /** Holds the responses to later requests. */
  hold(): void;
  /** Sends the held responses; later requests are answered immediately. */
  release(): void;
  /** Releases and stops listening. */
  close(): void;
}

export async function openHeldReceiver(): Promise<HeldReceiver> {
  let release = () => {};
  let released = Promise.resolve();
  const hold = () => {
    released = new Promise((resolve) => (release = resolve));
  };
  hold();
  const server = createServer((_request, response) => void released.then(() => response.end()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    hold,
    release: () => release(),
    close() {
      release();
      server.close();
    },
  };
}
