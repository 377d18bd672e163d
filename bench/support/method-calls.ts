/** Load of method calls over WebSockets: a number of callers with one call in flight each, spread over the given sockets. */
import { encodeText, type LeanSocket } from "./lean-socket.ts";
import { percentile } from "./statistics.ts";

const RPC = Buffer.from('"rpc"');
const SUCCESS = Buffer.from('"success":true');

export interface MethodCallResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface MethodCallOptions {
  /** Caller `i` uses sockets `i`, `i + callers`, `i + 2 × callers`, … in turn. */
  readonly sockets: readonly LeanSocket[];
  readonly callers: number;
  readonly method: string;
  readonly durationMs: number;
}

export function callMethods(options: MethodCallOptions): Promise<MethodCallResult> {
  const frame = encodeText(JSON.stringify({ type: "rpc", id: "1", method: options.method, args: [] }));
  const endsAt = performance.now() + options.durationMs;
  return runCallers(options, frame, () => performance.now() < endsAt);
}

/** Calls the method once on every socket. */
export async function callOnceEach(options: Omit<MethodCallOptions, "durationMs">): Promise<void> {
  const frame = encodeText(JSON.stringify({ type: "rpc", id: "1", method: options.method, args: [] }));
  await runCallers(options, frame, (_caller, calls) => calls < options.sockets.length / options.callers);
}

async function runCallers(
  { sockets, callers, method }: Omit<MethodCallOptions, "durationMs">,
  frame: Buffer,
  goesOn: (caller: number, calls: number) => boolean,
): Promise<MethodCallResult> {
  const latencies: number[] = [];
  const startedAt = performance.now();
  const run = (caller: number) =>
    new Promise<void>((resolve, reject) => {
      const own = sockets.filter((_socket, i) => i % callers === caller);
      let calls = 0;
      let sentAt = 0;
      const next = () => {
        const socket = own[calls % own.length];
        if (socket === undefined || !goesOn(caller, calls)) {
          for (const other of own) other.onText = () => undefined;
          resolve();
          return;
        }
        calls += 1;
        sentAt = performance.now();
        socket.send(frame);
      };
      for (const socket of own) {
        socket.onEnd = reason(reject);
        socket.onText = (text) => {
          // The first frames of a connection are its identity and state.
          if (!text.includes(RPC)) return;
          if (!text.includes(SUCCESS)) {
            reject(new Error(`${method} failed: ${text.toString()}`));
            return;
          }
          latencies.push(performance.now() - sentAt);
          next();
        };
      }
      next();
    });
  await Promise.all(Array.from({ length: callers }, (_, caller) => run(caller)));
  const seconds = (performance.now() - startedAt) / 1000;
  latencies.sort((a, b) => a - b);
  return {
    requests: latencies.length,
    perSecond: latencies.length / seconds,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
  };
}

function reason(reject: (error: Error) => void): (text: string) => void {
  return (text) => reject(new Error(text));
}
