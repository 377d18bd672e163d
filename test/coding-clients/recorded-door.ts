/**
 * Stands between a client and the gateway, and notes what passes: which requests, with which answer, and what was streamed so far. It listens
 * on a port, and on a socket file, by which a client in a network of its own reaches it.
 */
import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

export interface DoorRequest {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly isStream: boolean;
  /** The answer so far. */
  answer: string;
}

export interface RecordedDoor {
  readonly port: number;
  readonly socketFile: string;
  /** Requests that were answered, in the order of their answers. */
  readonly requests: DoorRequest[];
  /** Resolves when a stream under way, or one that has ended, has this text. */
  streamed(text: string): Promise<void>;
  close(): Promise<void>;
}

export async function openRecordedDoor(gatewayUrl: string, folder: string): Promise<RecordedDoor> {
  const { hostname, port: gatewayPort } = new URL(gatewayUrl);
  const requests: DoorRequest[] = [];
  const waiting = new Set<() => void>();

  function pass(incoming: IncomingMessage, response: ServerResponse): void {
    const { method = "GET", url: path = "/", headers } = incoming;
    const outgoing = httpRequest({ host: hostname, port: gatewayPort, method, path, headers });
    // Who left first ends the other.
    outgoing.on("error", () => response.destroy());
    response.on("close", () => outgoing.destroy());
    outgoing.on("response", (answer) => {
      const status = answer.statusCode ?? 0;
      const isStream = (answer.headers["content-type"] ?? "").startsWith("text/event-stream");
      const request: DoorRequest = { method, path, status, isStream, answer: "" };
      requests.push(request);
      response.writeHead(status, answer.headers);
      answer.on("error", () => response.destroy());
      answer.on("data", (chunk: Buffer) => {
        request.answer += chunk.toString("latin1");
        response.write(chunk);
        for (const check of waiting) check();
      });
      answer.on("end", () => response.end());
    });
    incoming.pipe(outgoing);
  }

  const socketFile = join(folder, "door.socket");
  const [onPort, onFile] = [createServer(pass), createServer(pass)];
  onPort.listen(0, "127.0.0.1");
  onFile.listen(socketFile);
  await Promise.all([once(onPort, "listening"), once(onFile, "listening")]);
  return {
    port: (onPort.address() as AddressInfo).port,
    socketFile,
    requests,
    streamed(text) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const check = () => {
        if (!requests.some(({ isStream, answer }) => isStream && answer.includes(text))) return;
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      check();
      return promise;
    },
    async close() {
      await Promise.all([onPort, onFile].map((server) => close(server)));
    },
  };
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
}
